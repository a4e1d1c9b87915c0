import { type ChildProcess, spawn } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '@shale/apiserver/control-plane/free-port.ts';
import { present } from '../../api/present.ts';

export interface DockerRegistry {
  /** `127.0.0.1:port` */
  readonly host: string;
  /** SIGTERM, and SIGKILL when it does not end. Resolves when the process is gone. */
  stop(): Promise<void>;
}

export interface DockerRegistryOptions {
  /** Where it keeps its configuration and blobs. */
  readonly dir: string;
  /** An IPv4 address of this machine, of a network of the test's own; loopback unless given. */
  readonly address?: string;
  /** Files of its certificate and key; without them it speaks plain HTTP. */
  readonly tls?: { readonly certificate: string; readonly key: string };
  /** File with users (bcrypt); without it anybody may push. */
  readonly htpasswd?: string;
  /** A command that runs the rest of its arguments, such as setpriv; without it the registry is started as it is. */
  readonly launcher?: readonly string[];
}

const READY_MS = 10_000;
const GRACE_MS = 3_000;

/**
 * Starts Debian's docker-registry on loopback.
 *
 * @throws Error when it is not installed, or not ready in time; with what it printed.
 */
export async function startDockerRegistry(options: DockerRegistryOptions): Promise<DockerRegistry> {
  const port = await freePort();
  const host = `${options.address ?? '127.0.0.1'}:${port}`;
  const config = path.join(options.dir, 'config.yml');
  await writeFile(config, configuration(options, host));
  const [command = '', ...args] = [...(options.launcher ?? []), 'docker-registry', 'serve', config];
  const child = spawn(command, args, { stdio: ['ignore', 'ignore', 'pipe'] });
  const output = tail(child);
  const exited = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const stop = async () => {
    child.kill('SIGTERM');
    const timer = setTimeout(() => child.kill('SIGKILL'), GRACE_MS);
    await exited;
    clearTimeout(timer);
  };
  try {
    await ready(host, options.tls !== undefined, child, output);
  } catch (error) {
    await stop();
    throw error;
  }
  return { host, stop };
}

function configuration({ dir, tls, htpasswd }: DockerRegistryOptions, host: string): string {
  return JSON.stringify({
    version: 0.1,
    log: { level: 'error' },
    storage: { filesystem: { rootdirectory: path.join(dir, 'blobs') }, delete: { enabled: true } },
    http: { addr: host, ...present({ tls }) },
    ...(htpasswd === undefined ? {} : { auth: { htpasswd: { realm: 'registry', path: htpasswd } } }),
  });
}

function tail(child: ChildProcess): () => string {
  let text = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    text = (text + chunk.toString('utf8')).slice(-2_000);
  });
  child.once('error', (error) => {
    text += error.message;
  });
  return () => text;
}

async function ready(host: string, tls: boolean, child: ChildProcess, output: () => string): Promise<void> {
  const until = performance.now() + READY_MS;
  while (performance.now() < until) {
    if (child.exitCode !== null || child.pid === undefined)
      throw new Error(`docker-registry exited: ${output()}`);
    const answered = await fetch(`http://${host}/v2/`).then(
      () => true,
      // A TLS server answers plain HTTP with a 400 or cuts it off: either way it listens.
      (error: { cause?: { code?: string } }) => tls && error.cause?.code !== 'ECONNREFUSED',
    );
    if (answered) return;
    await delay(25);
  }
  throw new Error(`docker-registry was not ready after ${READY_MS / 1000} s: ${output()}`);
}
