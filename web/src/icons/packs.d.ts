declare module "virtual:icon-packs" {
  /** First name and address of each part, in the order of the names. */
  export const PARTS: readonly (readonly [first: string, url: string])[];
}
