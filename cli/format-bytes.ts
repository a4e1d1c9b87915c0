/** @returns bytes in the unit that leaves one to three digits before the point. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  const rank = Math.min(bytes < 1 ? 0 : Math.floor(Math.log2(bytes) / 10), units.length - 1);
  const value = bytes / 1024 ** rank;
  return `${rank === 0 ? value : value.toFixed(1)} ${units[rank]}`;
}
