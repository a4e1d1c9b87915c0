import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { execa } from 'execa';
import { writeLayer } from '../../image/layer/write-layer.ts';
import { podmanAlone } from '../../workshop/sandbox/engine/start-engine.ts';
import { shellEntries } from '../../workshop/sandbox/node/stock-image.ts';
import type { LabRegistry } from './lab-registry.ts';
import { PAUSE_IMAGE } from './machine-image.ts';

const ROOT = path.join(import.meta.dirname, '../..');
const SHALE_IMAGE = 'localhost/shale:lab';
const BASE = 'localhost/debian:base';

/** systemd-shutdown waits for whom it has asked to end, and a shell that is a first process ends only if told to. */
const PAUSE = "trap 'exit 0' TERM INT; sleep 2147483647 & wait";

/** Where Shale's image is, in a registry. */
export interface PushedImage {
  readonly name: string;
  /** Not `latest`, which kubelets pull each time. */
  readonly tag: string;
}

/**
 * Builds Shale's image as `make image` does, without any network, and the one of the pods that only have to be there.
 *
 * @param rootfs of a Debian, which lends programs. @param dir to work in, and for `pause-image.tar`, which `ctr images
 *   import` reads.
 * @returns where it pushed Shale's.
 */
export async function buildImages(
  rootfs: string,
  dir: string,
  { host, user, certificates }: Pick<LabRegistry, 'host' | 'user' | 'certificates'>,
): Promise<PushedImage> {
  const storage = path.join(dir, 'podman');
  await mkdir(storage, { recursive: true });
  const podman = podmanAlone(storage);
  const [tar, pause] = [path.join(dir, 'base.tar'), path.join(dir, 'pause.tar')];
  await execa('tar', ['--directory', rootfs, '--create', '--file', tar, '.']);
  const run = async (...args: string[]) => {
    const [command, ...before] = podman;
    await execa(command, [...before, ...args], { cwd: ROOT });
  };
  await run('import', tar, BASE);
  await rm(tar);
  await execa('make', ['image', `ENGINE=${podman.join(' ')}`, `IMAGE=${SHALE_IMAGE}`, `BASE=${BASE}`], {
    cwd: ROOT,
  });
  await writeFile(pause, (await writeLayer(shellEntries())).bytes);
  await run(
    'import',
    '--change',
    `ENTRYPOINT ${JSON.stringify(['/usr/bin/sh', '-c', PAUSE])}`,
    pause,
    PAUSE_IMAGE,
  );
  await run('save', '--output', path.join(dir, 'pause-image.tar'), PAUSE_IMAGE);
  const pushed = { name: `${host}/shale/shale`, tag: 'lab' };
  const login = ['--creds', `${user.name}:${user.password}`, '--cert-dir', certificates];
  const [command, ...before] = podman.filter((word) => word !== '--net');
  const target = `${pushed.name}:${pushed.tag}`;
  await execa(command ?? '', [...before, 'push', '--quiet', ...login, SHALE_IMAGE, target]);
  await rm(storage, { recursive: true, force: true });
  await rm(pause);
  return pushed;
}
