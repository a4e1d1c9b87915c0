import { isDeepStrictEqual } from 'node:util';
import type { DigestedPullspec } from '../../../api/references.ts';
import { parseReference, type Reference } from '../../../image/reference.ts';
import { evaluatePolicy, isPolicy, requirementsFor } from './signature-policy.ts';

/** An image that a node may pull, and the key that signed it. */
export interface VerifiedImage {
  readonly image: DigestedPullspec;
  /** In PEM. */
  readonly publicKey: string;
}

/**
 * Keys (`keyData` of containers-policy.json(5)) by the scopes of transport docker that Shale has or had entries for.
 */
export type OwnEntries = Readonly<Record<string, readonly string[]>>;

/** What a policy becomes. */
export type MergedPolicy =
  | {
      readonly kind: 'merged';
      /** The policy without any entry of Shale's. */
      readonly without: string;
      readonly text: string;
      /** Shale's entries in it: one key each. */
      readonly entries: OwnEntries;
      /** Images that the policy accepts no matter who signed them, because of an entry that isn't Shale's. */
      readonly open: readonly DigestedPullspec[];
    }
  /** `why`: continues a sentence of which the file is the subject. */
  | { readonly kind: 'unusable'; readonly why: string };

interface Policy {
  readonly [key: string]: unknown;
  readonly transports?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
}

/**
 * Puts an entry into a host's policy for each repository that the node pulls from, and takes out those of Shale's that
 * are no longer needed. Whatever else the policy says stays. Nothing is let in that was not before: where an entry or a
 * default of the admin's asks for more than nothing, or is for this very repository, none is added, because the most
 * specific scope alone counts.
 *
 * Each entry has one key: a version before 5.32.2 of containers/image takes a policy with `keyDatas` for invalid and
 * pulls nothing any more. After a rotation the images that the previous key signed have scopes of their own, by digest.
 *
 * @param text of the policy. @param own what Shale has put into it.
 * @param images that the node may pull, the latest last; none takes out every entry.
 */
export function mergePolicy(text: string, own: OwnEntries, images: readonly VerifiedImage[]): MergedPolicy {
  if (!isPolicy(text) || repeatsKeys(text)) {
    return { kind: 'unusable', why: 'is not a valid policy (containers-policy.json(5))' };
  }
  const present = JSON.parse(text) as Policy;
  const bare = withoutOwn(present, own);
  const without = isDeepStrictEqual(bare, present) ? text : format(bare);
  const entries = entriesFor(without, images);
  const added = Object.keys(entries).length === 0 ? without : format(withEntries(bare, entries));
  const merged = isDeepStrictEqual(JSON.parse(added), present) ? text : added;
  const open = images
    .map(({ image }) => image)
    .filter((image) => {
      const decision = evaluatePolicy(merged, parseReference(image));
      return decision.kind === 'allow' && decision.signatures.length === 0;
    });
  return { kind: 'merged', without, text: merged, entries, open };
}

/** The latest image's key is the repository's; another image of it with another key is named by its digest. */
function entriesFor(text: string, images: readonly VerifiedImage[]): OwnEntries {
  const entries: Record<string, readonly string[]> = {};
  for (const { image, publicKey } of images.toReversed()) {
    const reference = parseReference(image);
    const repository = scopeOf(reference);
    if (!isAddable(text, reference)) continue;
    const key = [Buffer.from(publicKey).toString('base64')];
    const ofRepository = entries[repository];
    if (ofRepository === undefined) entries[repository] = key;
    else if (!isDeepStrictEqual(ofRepository, key) && !hasEntry(text, reference)) entries[image] = key;
  }
  return entries;
}

/** @returns whether the admin has an entry for exactly this image. */
function hasEntry(text: string, image: Reference): boolean {
  return requirementsFor(text, image).scope.endsWith(`@${image.digest}`);
}

/** @returns whether no entry of the admin's is for this repository, and what holds for it asks for nothing. */
function isAddable(text: string, reference: Reference): boolean {
  const { registry, repository } = reference;
  const { scope, requirements } = requirementsFor(text, { registry, repository });
  return (
    scope !== `scope ${scopeOf(reference)}` &&
    requirements.every(({ type }) => type === 'insecureAcceptAnything')
  );
}

/** @returns the scope of an image's repository. */
export function scopeOf({ registry, repository }: Pick<Reference, 'registry' | 'repository'>): string {
  return `${registry}/${repository}`;
}

function withoutOwn(policy: Policy, own: OwnEntries): Policy {
  const { docker, ...others } = policy.transports ?? {};
  if (docker === undefined) return policy;
  const isOwn = ([scope, requirements]: readonly [string, unknown]) =>
    own[scope]?.some((key) => isDeepStrictEqual(requirements, requirementOf(key))) === true;
  const kept = Object.entries(docker).filter((entry) => !isOwn(entry));
  if (kept.length === Object.keys(docker).length) return policy;
  const transports = { ...others, ...(kept.length === 0 ? {} : { docker: Object.fromEntries(kept) }) };
  const { transports: _, ...rest } = policy;
  return Object.keys(transports).length === 0 ? rest : { ...rest, transports };
}

function withEntries(policy: Policy, entries: OwnEntries): Policy {
  const added = Object.entries(entries).flatMap(([scope, keys]) =>
    keys.map((key) => [scope, requirementOf(key)] as const),
  );
  const docker = { ...policy.transports?.['docker'], ...Object.fromEntries(added) };
  return { ...policy, transports: { ...policy.transports, docker } };
}

function requirementOf(keyData: string): readonly object[] {
  return [{ type: 'sigstoreSigned', keyData }];
}

/** As containers-common indents it. */
function format(policy: Policy): string {
  return `${JSON.stringify(policy, undefined, 4)}\n`;
}

/** containers/image refuses a policy that has a key twice, and writing it again would make it valid. */
function repeatsKeys(text: string): boolean {
  const written = text.match(/"(?:[^"\\]|\\.)*"\s*:?/g)?.filter((each) => each.endsWith(':')).length ?? 0;
  return written !== countKeys(JSON.parse(text));
}

function countKeys(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const values: readonly unknown[] = Object.values(value);
  const own = Array.isArray(value) ? 0 : values.length;
  return values.reduce<number>((sum, each) => sum + countKeys(each), own);
}
