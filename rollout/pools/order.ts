/** Compares by code unit, so that an order is the same under every locale. For `toSorted`. */
export function byCodeUnit(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
