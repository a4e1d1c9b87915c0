/** @returns words as one command of a POSIX shell, none of them expanded. */
export function shellWords(words: readonly string[]): string {
  return words.map(shellWord).join(' ');
}

/** Quoted only where it has to be: an admin reads these lines on the node. */
function shellWord(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
