import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { stringify } from 'yaml';
import { type Digest, hexOf } from '../../api/references.ts';
import { sbomOf } from '../../container/sbom.ts';
import { digestOf } from '../../image/digest.ts';
import { archiveEntries, END_OF_ARCHIVE } from '../../image/layer/write-layer.ts';
import { fileEntry } from '../shale-files.ts';
import type { CliExecutable, CommandLine } from './command-line.ts';

/**
 * Every executable is for Linux: npm has no Node of the pinned version for macOS, and nobody has run one on Windows.
 */
const OS = 'linux';
/** The executable's name in its archive. */
const PROGRAM = 'shale';
/** Files that come with it. */
const COMPANIONS = ['LICENSE', 'NOTICE', 'THIRD-PARTY-LICENSES', 'kubectl_complete-shale'] as const;

/**
 * @param given.root of the checkout.
 * @param given.downloads URL of the directory that people download the release's files from.
 * @returns the files of a release that the command line has, by name: an archive for each platform, their bill of
 *   materials, and krew's manifest.
 */
export async function cliFiles(
  { executables, installed, licenses }: CommandLine,
  given: { readonly version: string; readonly root: string; readonly downloads: string },
): Promise<Map<string, Buffer>> {
  const { version, root, downloads } = given;
  const read = (file: string) => readFile(path.join(root, file), 'utf8');
  const texts = {
    LICENSE: await read('LICENSE'),
    NOTICE: await read('NOTICE'),
    'THIRD-PARTY-LICENSES': licenses,
    'kubectl_complete-shale': await read('bin/kubectl_complete-shale'),
  };
  const files = new Map<string, Buffer>();
  const archives: PlatformArchive[] = [];
  for (const executable of executables) {
    const { architecture } = executable;
    const name = `shale-cli-${version}-${OS}-${architecture}.tar.gz`;
    const archive = await cliArchive(executable, texts);
    files.set(name, archive);
    archives.push({ os: OS, architecture, name, digest: digestOf(archive) });
  }
  files.set('shale-cli.spdx.json', Buffer.from(`${sbomOf(version, installed, '', 'cli')}\n`));
  files.set('krew-shale.yaml', Buffer.from(krewManifest(version, archives, downloads)));
  return files;
}

/**
 * Packs the command line as krew and people unpack it. The same parts give the same bytes.
 *
 * @param texts of the other files, by name; Node's licences are added to those of third parties.
 */
async function cliArchive(
  { content, license }: CliExecutable,
  texts: Readonly<Record<(typeof COMPANIONS)[number], string>>,
): Promise<Buffer> {
  const entries = [
    fileEntry(`/${PROGRAM}`, content, 0o755),
    ...COMPANIONS.map((name) => {
      const text =
        name === 'THIRD-PARTY-LICENSES' ? `Node.js\n\n${license.trimEnd()}\n\n${texts[name]}` : texts[name];
      return fileEntry(`/${name}`, text, name === 'kubectl_complete-shale' ? 0o755 : 0o644);
    }),
  ];
  return gzipSync(Buffer.concat([await archiveEntries(entries, 0), END_OF_ARCHIVE]), { level: 9 });
}

/** An archive of the release, for one platform. */
interface PlatformArchive {
  readonly os: string;
  /** By Go's name, as krew compares it. */
  readonly architecture: string;
  readonly name: string;
  readonly digest: Digest;
}

/**
 * Writes the manifest that `kubectl krew install --manifest` and an index of krew take: `kubectl shale` runs the
 * command line (krew.sigs.k8s.io/docs/developer-guide/plugin-manifest).
 *
 * @param downloads URL of the directory that the archives are in.
 * @returns YAML.
 */
function krewManifest(version: string, archives: readonly PlatformArchive[], downloads: string): string {
  return stringify(
    {
      apiVersion: 'krew.googlecontainertools.github.com/v1alpha2',
      kind: 'Plugin',
      metadata: { name: 'shale' },
      spec: {
        version: `v${version}`,
        shortDescription: 'Operating-system images for the nodes of a cluster',
        description:
          'Shows the progress of pools, builds and nodes, predicts what a change of a MachineConfig requires of the nodes, ' +
          'and turns layering on and off: the command line of Shale, which builds the operating system of Kubernetes nodes ' +
          'on the cluster that runs them.\n',
        platforms: archives.map(({ os, architecture, name, digest }) => ({
          selector: { matchLabels: { os, arch: architecture } },
          uri: `${downloads.replace(/\/$/, '')}/${name}`,
          sha256: hexOf(digest),
          files: [PROGRAM, ...COMPANIONS].map((file) => ({ from: file, to: '.' })),
          bin: PROGRAM,
        })),
      },
    },
    { lineWidth: 0 },
  );
}
