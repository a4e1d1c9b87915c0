/** @returns a text of at most so many characters; an ellipsis marks what is cut off. */
export function cutText(text: string, most: number): string {
  return text.length <= most ? text : `${text.slice(0, most - 1)}…`;
}
