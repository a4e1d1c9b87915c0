import { plural } from '../../api/plural.ts';
import { textTable } from '../command-line/output.ts';
import { formatBytes } from '../command-line/quantities.ts';
import type { FileView, ImageTrust, ImageView } from './image-view.ts';

/** Names of artifacts that refer to images, by media type. */
const ARTIFACTS: Readonly<Record<string, string>> = {
  'application/vnd.in-toto+json': 'provenance (in-toto)',
  'application/spdx+json': 'list of files (SPDX)',
  'application/vnd.shale.image-contents.v1+json': 'list of what it has (packages, kernels, units, users)',
  'application/vnd.cyclonedx+json': 'list of components (CycloneDX)',
};

/**
 * @param files of the rendered config's layer, if the user asked for them.
 * @returns the output of `shale image inspect` as text.
 */
export function imageText(
  name: string,
  view: ImageView & ImageTrust,
  files: readonly FileView[] | undefined,
): string {
  const blocks = [
    facts(name, view),
    textTable(['LAYER', 'SIZE', 'FROM', 'DIGEST'], layerRows(view)),
    transitionLines(view),
    ...(files === undefined ? [] : [textTable(['MODE', 'OWNER', 'SIZE', 'PATH'], files.map(fileRow))]),
  ];
  return blocks.map((lines) => lines.join('\n')).join('\n\n');
}

function facts(name: string, view: ImageView & ImageTrust): string[] {
  const { url, revision } = view.source;
  const source = [url, revision].filter((part) => part !== undefined).join(' at ');
  const rows: readonly (readonly [string, string | null])[] = [
    ['Image', name],
    ['Digest', view.digest],
    ['Platform', platformText(view)],
    ['Pool', view.pool],
    ['Config', view.renderedConfig],
    ['Base image', view.baseImage],
    ['Stock image', view.stockImage],
    ['Policies', view.policyDigest],
    ['Built by', view.shaleVersion === null ? null : `Shale ${view.shaleVersion}`],
    ['Source', source === '' ? null : source],
    ['Size', `${formatBytes(view.bytes)} in ${plural(view.layers.length, 'layer')}`],
    ['Signatures', signatureText(view)],
    ['Attached', view.referrers.map(referrerText).join(', ') || 'nothing'],
  ];
  const known = rows.flatMap(([title, value]) => (value === null ? [] : [[`${title}:`, value]]));
  return textTable(['', ''], known).slice(1);
}

function platformText({ platform, platforms }: ImageView): string {
  return platforms === undefined ? platform : `${platform}, from an index of ${platforms.join(', ')}`;
}

function signatureText({ signatures, signedByKey }: ImageTrust): string {
  const by =
    signedByKey === undefined
      ? ''
      : signedByKey
        ? ', one matches the given key'
        : ', none matches the given key';
  return `${signatures === 0 ? 'none' : signatures}${by}`;
}

function referrerText({ artifactType }: ImageTrust['referrers'][number]): string {
  return ARTIFACTS[artifactType] ?? (artifactType || 'unknown');
}

function layerRows({ layers, renderedConfig }: ImageView): string[][] {
  return layers.map(({ digest, bytes, from }, index) => [
    String(index + 1),
    formatBytes(bytes),
    from === 'renderedConfig' ? (renderedConfig ?? '') : 'base image',
    digest,
  ]);
}

function transitionLines({ transitions, transitionsUnknown, renderedConfig }: ImageView): string[] {
  if (renderedConfig === null)
    return ['Shale did not build this image, so it does not state what nodes have to do.'];
  if (transitionsUnknown !== undefined) return [`Every node reboots: ${transitionsUnknown}.`];
  const known = transitions.flatMap(({ from, base, actions, because }) => [
    `From ${from}`,
    `  on ${base}: ${actions}`,
    ...because.map((line) => `    ${line}`),
  ]);
  return [...known, 'From anything else: Reboot'];
}

function fileRow({ path, mode = '', owner = '', bytes, target, type }: FileView): string[] {
  const arrow = type === 'hardlink' ? ' = ' : ' -> ';
  const name =
    type === 'directory' ? `${path}/` : `${path}${target === undefined ? '' : `${arrow}${target}`}`;
  return [mode, owner, bytes === undefined ? '' : formatBytes(bytes), name];
}
