// What is said under an alarm, by people and by the platform.

import { useQuery, type UseQueryResult } from "@tanstack/react-query";
import { api } from "@/api/client";
import type { EntityId, PageData } from "@/api/types";
import { object, text, type Json } from "@/dashboard/json";
import type { Alarm } from "./alarm";

export interface AlarmComment {
  id: EntityId | { id: string };
  createdTime: number;
  userId?: EntityId | null;
  type: "SYSTEM" | "OTHER";
  comment: Json;
  firstName?: string | null;
  lastName?: string | null;
  email?: string | null;
}

/** How often comments of others are looked for, milliseconds. */
const EVERY_MS = 10_000;
const MOST = 200;

export function useComments(alarm: Alarm): UseQueryResult<AlarmComment[]> {
  return useQuery({
    queryKey: ["alarm comments", alarm.id.id, alarm.status, alarm.assigneeId?.id],
    refetchInterval: EVERY_MS,
    queryFn: async () => (await api.get<PageData<AlarmComment>>(`/api/alarm/${alarm.id.id}/comment`, { pageSize: MOST, page: 0, sortProperty: "createdTime", sortOrder: "ASC" })).data,
  });
}

export function textOf(comment: AlarmComment): string {
  return text(comment.comment["text"]) ?? "";
}

export function isEdited(comment: AlarmComment): boolean {
  return String(object(comment.comment)["edited"]) === "true";
}

export function authorOf(comment: AlarmComment): string {
  const name = [comment.firstName, comment.lastName].filter((part) => typeof part === "string" && part !== "").join(" ");
  return name !== "" ? name : (comment.email ?? "");
}
