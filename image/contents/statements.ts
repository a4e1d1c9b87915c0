/** @returns the lines of a file of settings, without empty ones and those that `#` or `;` begin. */
export function statementsOf(text: string): readonly string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#') && !line.startsWith(';'));
}

/** @param head the beginning of a file. @returns the first of its statements, which may be cut off. */
export function firstStatement(head: string): string {
  return statementsOf(head)[0] ?? '';
}
