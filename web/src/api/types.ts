// The shapes of the REST API that screens use; those of ThingsBoard CE.

export type Authority = "SYS_ADMIN" | "TENANT_ADMIN" | "CUSTOMER_USER";

export interface EntityId {
  entityType: string;
  id: string;
}

export interface PageData<T> {
  data: T[];
  totalPages: number;
  totalElements: number;
  hasNext: boolean;
}

export interface User {
  id: EntityId;
  authority: Authority;
  email: string;
  firstName?: string | null;
  lastName?: string | null;
  phone?: string | null;
  tenantId?: EntityId;
  customerId?: EntityId;
  additionalInfo?: UserInfo | null;
}

/** What is known of a user besides the fields of every user, under ThingsBoard's names. */
export interface UserInfo {
  defaultDashboardId?: string | null;
  defaultDashboardFullscreen?: boolean | null;
  homeDashboardId?: string | null;
  homeDashboardHideToolbar?: boolean | null;
  lang?: string | null;
  unitSystem?: string | null;
  [field: string]: unknown;
}

/** What all entities of lists have; columns read the rest by name. */
export interface Entity {
  id: EntityId;
  createdTime: number;
  name?: string | null;
  title?: string | null;
  email?: string | null;
  [field: string]: unknown;
}

export type Scope = "CLIENT_SCOPE" | "SHARED_SCOPE" | "SERVER_SCOPE";

export interface Attribute {
  key: string;
  value: unknown;
  lastUpdateTs: number;
}
