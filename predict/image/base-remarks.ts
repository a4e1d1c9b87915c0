import { isByDigest } from '../../api/references.ts';
import type { PoolTrees } from './base-lookup.ts';
import { type ImageInputs, requestedOf } from './image-to-build.ts';

/**
 * @param after with what is assumed of the tags. @param asked what registries answered, by name.
 * @returns what isn't known of a layered pool's base images, one line each.
 */
export function baseRemarks(
  before: ImageInputs,
  after: ImageInputs,
  asked: NonNullable<ImageInputs['lookups']>,
): readonly string[] {
  const [from, to] = [requestedOf(before), requestedOf(after)];
  if (to === undefined) return [];
  const names = [...new Set([from, to])].filter((name) => name !== undefined && !isByDigest(name));
  if (from === to) {
    const answer = asked.get(to);
    if (names.length === 0 || answer?.kind !== 'unknown') return [];
    return [
      `base image ${to} can't be looked up, so it is assumed that its tag was not moved: ${answer.why}`,
    ];
  }
  return names.flatMap((name = '') => {
    const lookup = (name === to ? after : before).lookups?.get(name);
    if (lookup?.kind === 'found') return [];
    const why = lookup?.why ?? 'no registry was asked (--resolve-tags asks)';
    return [`the digest of base image ${name} is not known, so a reboot is planned for it: ${why}`];
  });
}

/** @param base what is known of a pool's base image. @returns what a plan can't tell, one line each. */
export function unreadBase(base: ReturnType<PoolTrees['get']>): readonly string[] {
  if (base?.kind !== 'unknown') return [];
  return [`the config was not compared with what the base image has: ${base.why}`];
}
