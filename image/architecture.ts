import type { Index } from './manifest.ts';

/** Go's words, as images say them (OCI image-spec, image-index.md), for those of Node.js that are others. */
const GO_WORDS: Readonly<Record<string, string>> = { x64: 'amd64', ia32: '386' };

/**
 * @param nodeWord as `process.arch` says it.
 * @returns the same architecture in Go's words.
 */
export function goArchitecture(nodeWord: string): string {
  return GO_WORDS[nodeWord] ?? nodeWord;
}

type Entry = Index['manifests'][number];

/**
 * Chooses the Linux image of an index for an architecture. Nodes don't tell their variant, so the one that runs on each
 * of them counts: none named, for arm64 also v8, which is all it has, otherwise the first.
 *
 * @returns undefined where there is none.
 */
export function imageFor({ manifests }: Pick<Index, 'manifests'>, architecture: string): Entry | undefined {
  const there = manifests.filter(
    ({ platform }) => platform?.os === 'linux' && platform.architecture === architecture,
  );
  const isPlain = ({ platform }: Entry) =>
    platform?.variant === undefined || (architecture === 'arm64' && platform.variant === 'v8');
  return there.find(isPlain) ?? there[0];
}

/** @returns the platforms of an index, for messages. */
export function platformsOf({ manifests }: Pick<Index, 'manifests'>): readonly string[] {
  return manifests.map(({ platform }) =>
    platform === undefined
      ? 'unknown'
      : [platform.os, platform.architecture, platform.variant].filter((part) => part !== undefined).join('/'),
  );
}
