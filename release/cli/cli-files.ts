import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { sbomOf } from '../../container/sbom.ts';
import { digestOf } from '../../image/digest.ts';
import { cliArchive } from './archive.ts';
import type { CommandLine } from './command-line.ts';
import { krewManifest, type PlatformArchive } from './krew-manifest.ts';

/** Every executable is for Linux: npm has no Node of the pinned version for macOS, and nobody has run one on Windows. */
const OS = 'linux';

/**
 * @param given.root of the checkout.
 * @param given.downloads URL of the directory that people download the release's files from.
 * @returns the files of a release that the command line has, by name: an archive for each platform, their bill of materials,
 *   and krew's manifest.
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
