import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { connect, createServer, type Server, type Socket } from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

/** Another process has the sandbox of this directory. */
export class SandboxInUse extends Error {
  override readonly name = 'SandboxInUse';

  constructor(dir: string) {
    super(`a sandbox runs in ${dir} already; shale sandbox down ends it`);
  }
}

/** ms between two attempts to reach the process that has the place. */
export const RETRY_MS = 50;
/** A process that ends takes less than these attempts: 5 s. */
const CONNECT_ATTEMPTS = 100;

export interface SandboxLock {
  release(): void;
}

/**
 * Takes the one place of a directory's sandbox.
 *
 * @throws SandboxInUse.
 */
export async function lockSandbox(dir: string): Promise<SandboxLock> {
  const lock = await tryLock(dir);
  if (lock === undefined) throw new SandboxInUse(dir);
  return lock;
}

/**
 * Does work while no other process, and nothing else in this one, does work under the same name.
 *
 * @param name a path that the work is about.
 * @returns what the work returns. @throws what it throws; the signal's reason while another has the lock.
 */
export async function whileLocked<T>(name: string, signal: AbortSignal, work: () => Promise<T>): Promise<T> {
  for (;;) {
    const lock = await tryLock(name);
    if (lock === undefined) {
      await untilUnlocked(name, signal);
      continue;
    }
    try {
      return await work();
    } finally {
      lock.release();
    }
  }
}

/**
 * The kernel releases the lock when this process ends, however it ends: it is a socket in the abstract namespace
 * (unix(7)), which leaves no file behind that could be stale.
 */
async function tryLock(name: string): Promise<SandboxLock | undefined> {
  const server: Server = createServer((socket) => socket.unref().on('error', () => socket.destroy()));
  server.unref();
  try {
    server.listen(socketName(name));
    await once(server, 'listening');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') return undefined;
    throw error;
  }
  return { release: () => void server.close() };
}

/** @returns whether a process has the directory's sandbox. */
export async function isLocked(dir: string): Promise<boolean> {
  const socket = await connectTo(dir);
  socket?.destroy();
  return socket !== undefined;
}

/** Resolves once no process has the directory's sandbox. @throws the signal's reason. */
export async function untilUnlocked(dir: string, signal: AbortSignal): Promise<void> {
  // More than once: a process that is killed loses its connections a moment before the place.
  for (let socket = await connectTo(dir); socket !== undefined; socket = await connectTo(dir)) {
    await untilClosed(socket, signal);
    await delay(RETRY_MS, undefined, { signal });
  }
}

/** The other end never sends anything: the connection ends when its process does. */
async function untilClosed(socket: Socket, signal: AbortSignal): Promise<void> {
  try {
    socket.resume();
    await once(socket, 'close', { signal });
  } catch (error) {
    // A process that was killed resets its connections.
    if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error;
  } finally {
    socket.destroy();
  }
}

/**
 * @returns a connection to the process that has the place; undefined when none has.
 * @throws the connection's error; ECONNRESET where it is still reset after several attempts.
 */
async function connectTo(dir: string): Promise<Socket | undefined> {
  for (let attempt = 1; ; attempt += 1) {
    const socket = connect(socketName(dir));
    try {
      await once(socket, 'connect');
      return socket;
    } catch (error) {
      socket.destroy();
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ECONNREFUSED') return undefined;
      // Reset while connecting: its process is just ending, and a later attempt finds it gone.
      if (code !== 'ECONNRESET' || attempt === CONNECT_ATTEMPTS) throw error;
      await delay(RETRY_MS);
    }
  }
}

/** @returns the abstract name of the socket that the process with the directory's sandbox listens on. */
export function socketName(dir: string): string {
  const hash = createHash('sha256').update(path.resolve(dir)).digest('hex').slice(0, 32);
  return `\0shale-sandbox-${hash}`;
}
