/**
 * Breaks text between words. A word that is longer than a line is on a line of its own.
 *
 * @param width characters of a line. @param indent before each line but the first.
 * @param from where the first line may be broken at the earliest.
 */
export function inLines(text: string, width: number, indent: string, from = indent.length): string[] {
  const lines: string[] = [];
  let rest = text;
  let least = from;
  while (rest.length > width) {
    const before = rest.lastIndexOf(' ', width);
    const at = before > least ? before : rest.indexOf(' ', least + 1);
    if (at === -1) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = indent + rest.slice(at + 1);
    least = indent.length;
  }
  return [...lines, rest];
}
