/** Bytes of a file that may list accounts. */
export const MAX_ACCOUNTS_BYTES = 1024 * 1024;

/**
 * Whether a text begins like passwd(5) or group(5). Files of an ostree commit in a container are hard links to objects,
 * which are named by their digest (ostree-ext, "tar export"): which of them are lists of accounts shows only later.
 */
export function looksLikeAccounts(text: string): boolean {
  return /^[A-Za-z_][^:\n]*:[^:\n]*:\d+:/.test(text);
}

/**
 * @param texts of passwd(5) or group(5); a later one comes before an earlier one.
 * @returns numbers by name.
 */
export function accountsIn(texts: readonly string[]): ReadonlyMap<string, number> {
  const accounts = new Map<string, number>();
  for (const text of texts) {
    for (const line of text.split('\n')) {
      const [name = '', , id = ''] = line.split(':');
      if (name !== '' && /^\d+$/.test(id)) accounts.set(name, Number(id));
    }
  }
  return accounts;
}
