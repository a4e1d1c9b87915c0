import { gzipSync } from 'node:zlib';
import { archiveEntries, END_OF_ARCHIVE } from '../../image/layer/write-layer.ts';
import { fileEntry } from '../shale-files.ts';
import type { CliExecutable } from './command-line.ts';

/** The executable's name in its archive. */
export const PROGRAM = 'shale';
/** Files that come with it. */
export const COMPANIONS = ['LICENSE', 'NOTICE', 'THIRD-PARTY-LICENSES', 'kubectl_complete-shale'] as const;

/**
 * Packs the command line as krew and people unpack it. The same parts give the same bytes.
 *
 * @param texts of the other files, by name; Node's licences are added to those of third parties.
 */
export async function cliArchive(
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
