import { cp, mkdir, rename, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SHALE_VERSION } from '../../../api/names.ts';
import { osCommandRunner } from '../../../daemon/os/os-command.ts';
import { productRooms } from '../../checks/import-directions.ts';
import { createDisk } from './cached-disk.ts';

export interface PodDiskOptions {
  /** Debian's, with what Shale's image takes from its base. */
  readonly rootfs: string;
  /** Where to make it; what it is made of is left beside it. */
  readonly directory: string;
  /** The API server's certificate authority, and a token for it. */
  readonly caPem: string;
  readonly token: string;
  /** On the host's loopback. */
  readonly ports: { readonly registry: number; readonly api: number };
  readonly signal: AbortSignal;
}

const CHECKOUT = path.join(import.meta.dirname, '../../..');
const COMMAND_MS = 600_000;
/** As .dockerignore has it. */
const LEFT_OUT = /\.test\.ts$|\/(testing|testdata)$|\/page\/app$/;

/**
 * Makes a disk with what a kubelet would have brought to the machine: Shale's image, as the Containerfile's own scripts
 * make it, and the daemon's service account. It is no part of the operating system, so that updates and ways back leave
 * it alone, as they do a container runtime's images.
 *
 * @returns the disk. @throws OsCommandError when a part of it can't be made.
 */
export async function makePodDisk(options: PodDiskOptions): Promise<string> {
  const { directory, caPem, token, ports, signal } = options;
  const tree = path.join(directory, 'pod');
  await mkdir(path.join(tree, 'service-account'), { recursive: true });
  await writeFile(path.join(tree, 'service-account/ca.crt'), caPem);
  await writeFile(path.join(tree, 'service-account/token'), token);
  await writeFile(path.join(tree, 'ports'), `REGISTRY_PORT=${ports.registry}\nAPI_PORT=${ports.api}\n`);
  await rename(await imageRoot(options), path.join(tree, 'image'));
  const file = path.join(directory, 'pod.raw');
  await createDisk(file, 1024 ** 3);
  const limits = { timeoutMs: COMMAND_MS, signal };
  await osCommandRunner()(['mkfs.ext4', '-q', '-L', 'pod', '-d', tree, file], limits);
  await rm(tree, { recursive: true });
  return file;
}

/** Takes the Containerfile's steps, on Debian as the base. @returns the root of Shale's image. */
async function imageRoot({ rootfs, directory, signal }: PodDiskOptions): Promise<string> {
  const run = osCommandRunner();
  const limits = { timeoutMs: COMMAND_MS, signal };
  await run([path.join(CHECKOUT, 'bin/image-packages')], limits);
  await run([path.join(CHECKOUT, 'bin/bootstrap'), 'programs'], limits);
  const base = path.join(directory, 'base');
  await run(['cp', '--archive', '--reflink=auto', rootfs, base], limits);
  const shale = path.join(base, 'shale');
  await run(['cp', '--archive', path.join(CHECKOUT, '.image-packages'), shale], limits);
  await cp(path.join(CHECKOUT, 'container'), path.join(base, 'container'), { recursive: true });
  for (const room of productRooms) {
    await cp(path.join(CHECKOUT, room), path.join(shale, room), {
      recursive: true,
      filter: (place) => !LEFT_OUT.test(place),
    });
  }
  const inside = ['/container/prepare-root', '/root-of-image', SHALE_VERSION];
  await run(
    [
      ...([
        'systemd-nspawn',
        '--quiet',
        '--register=no',
        '--keep-unit',
        '--private-network',
        '--pipe',
      ] as const),
      ...[`--directory=${base}`, ...inside],
    ],
    limits,
  );
  const root = path.join(base, 'root-of-image');
  await rename(shale, path.join(root, 'shale'));
  const made = path.join(directory, 'image');
  await rename(root, made);
  await rm(base, { recursive: true });
  return made;
}
