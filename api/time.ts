/** @returns a time as the API server writes one: metav1.Time has whole seconds, and a finer one would differ from what comes back. */
export function toSeconds(time: Date): string {
  return time.toISOString().replace(/\.\d+Z$/, 'Z');
}
