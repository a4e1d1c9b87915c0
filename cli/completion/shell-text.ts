import type { CommandNode, OptionNode, PlacedCommand, ValueKind } from './command-tree.ts';

/** @returns text as one word of sh, bash, zsh or fish, whatever is in it. */
export function quoted(text: string): string {
  // fish knows \\' within single quotes, the others don't: an apostrophe stands outside of them for all.
  return `'${text.replaceAll('\\', '').replaceAll("'", "'\"'\"'")}'`;
}

/** @returns a list of words as one word. */
export function shellWords(words: readonly string[]): string {
  return quoted(words.join(' '));
}

/** @returns the options after which a value stands. */
export function valueFlags({
  options,
}: CommandNode): readonly (OptionNode & { readonly value: ValueKind })[] {
  return options.flatMap((option) =>
    option.value === undefined ? [] : [{ ...option, value: option.value }],
  );
}

/**
 * @param completeValue what the shell does for a value.
 * @returns the cases of `case "$at:$previous"` in bash and zsh, one for each option that takes a value.
 */
export function valueCases(
  { path, command }: PlacedCommand,
  completeValue: (value: ValueKind) => string,
): string[] {
  return valueFlags(command).map(({ flags, value }) => {
    const pattern = flags.map((flag) => `'${path}:${flag}'`).join('|');
    return `    ${pattern}) ${completeValue(value)} ;;`;
  });
}
