import { MirrorKind } from '../../api/machine-configuration.ts';

/** One mirror rule by the kind of object that it comes from. */
export interface RuleOrigin {
  readonly kind: MirrorKind;
  readonly source: string;
  /** In the order in which they are tried. */
  readonly mirrors: readonly string[];
  /** The source itself is never contacted. */
  readonly never: boolean;
}

const NEVER = ' (NeverContactSource)';

/** @returns the rule as a comment of registries.conf: `# ImageDigestMirrorSet: a.example.org -> b.example.org/a`. */
export function formatOrigin({ kind, source, mirrors, never }: RuleOrigin): string {
  return `# ${kind}: ${source} -> ${mirrors.join(', ')}${never ? NEVER : ''}`;
}

/** @returns the rules that a registries.conf names in its comments; none of a file that Shale did not write. */
export function readOrigins(registriesConf: string): RuleOrigin[] {
  return registriesConf.split('\n').flatMap((line): RuleOrigin[] => {
    const [, name, source, rest] = /^# (\w+): (\S+) -> (.*)$/.exec(line) ?? [];
    const kind = MirrorKind.safeParse(name);
    if (!kind.success || source === undefined || rest === undefined) return [];
    const never = rest.endsWith(NEVER);
    const mirrors = (never ? rest.slice(0, -NEVER.length) : rest)
      .split(', ')
      .filter((mirror) => mirror !== '');
    return [{ kind: kind.data, source, mirrors, never }];
  });
}
