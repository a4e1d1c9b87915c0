/** What a check found. */
export type Finding =
  | { readonly level: 'ok'; readonly check: string; readonly what: string }
  | {
      /** A failure keeps Shale from working; a warning may. */
      readonly level: 'warning' | 'failure';
      readonly check: string;
      readonly what: string;
      /** How to mend it. */
      readonly mend: string;
    };

/** @returns what a check of this name found. */
export function findings(check: string) {
  return {
    ok: (what: string): Finding => ({ level: 'ok', check, what }),
    warning: (what: string, mend: string): Finding => ({ level: 'warning', check, what, mend }),
    failure: (what: string, mend: string): Finding => ({ level: 'failure', check, what, mend }),
  };
}

/** @returns findings for people: what is wrong with how to mend it below. */
export function formatFindings(found: readonly Finding[]): string {
  const width = 'failure'.length;
  return found
    .flatMap((finding) => [
      `${finding.level.padEnd(width)}  ${finding.check}: ${finding.what}`,
      ...(finding.level === 'ok' ? [] : [`${' '.repeat(width)}  -> ${finding.mend}`]),
    ])
    .join('\n');
}
