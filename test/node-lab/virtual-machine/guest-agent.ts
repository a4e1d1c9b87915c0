import { once } from 'node:events';
import { createConnection, type Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { z } from 'zod';

/** A command that ended in the guest with another code than 0. */
class GuestCommandError extends Error {
  override readonly name = 'GuestCommandError';
}

const Answer = z.object({ return: z.unknown() }).or(z.object({ error: z.object({ desc: z.string() }) }));
const Started = z.object({ pid: z.int() });
const Base64 = z.base64().transform((text) => Buffer.from(text, 'base64').toString('utf8'));
const Status = z.object({
  exited: z.boolean(),
  exitcode: z.int().optional(),
  'out-data': Base64.default(''),
  'err-data': Base64.default(''),
});

/** The agent doesn't report that a command has ended: it has to be asked. */
const POLL_MS = 100;

/**
 * Runs a command in a virtual machine by its QEMU guest agent (QEMU Guest Agent Protocol Reference).
 *
 * @param socketFile the host's end of the agent's port. @param signal gives up; a guest that is down never answers.
 * @returns what it printed. @throws GuestCommandError when it ends with another code than 0, with all that it printed.
 */
export async function runInGuest(
  socketFile: string,
  [path, ...arg]: readonly [string, ...string[]],
  signal: AbortSignal,
): Promise<string> {
  await using agent = await connect(socketFile, signal);
  const { pid } = Started.parse(await agent.ask('guest-exec', { path, arg, 'capture-output': true }));
  for (;;) {
    const status = Status.parse(await agent.ask('guest-exec-status', { pid }));
    if (status.exited) {
      if (status.exitcode === 0) return status['out-data'];
      const output = [status['out-data'], status['err-data']].join('\n').trim();
      throw new GuestCommandError(`${[path, ...arg].join(' ')}: exit code ${status.exitcode}\n${output}`);
    }
    await delay(POLL_MS, undefined, { signal });
  }
}

interface Agent extends AsyncDisposable {
  ask(command: string, args: Readonly<Record<string, unknown>>): Promise<unknown>;
}

async function connect(socketFile: string, signal: AbortSignal): Promise<Agent> {
  signal.throwIfAborted();
  const socket = createConnection(socketFile);
  const close = async () => {
    socket.destroy();
    if (!socket.closed) await once(socket, 'close');
  };
  try {
    await once(socket, 'connect', { signal });
    const lines = answers(socket, signal);
    const write = (command: string, args: Readonly<Record<string, unknown>>) =>
      socket.write(`${JSON.stringify({ execute: command, arguments: args })}\n`);
    await synchronize(write, lines);
    return {
      ask: async (command, args) => {
        write(command, args);
        const answer = await next(lines);
        if ('error' in answer) throw new GuestCommandError(`${command}: ${answer.error.desc}`);
        return answer.return;
      },
      [Symbol.asyncDispose]: close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Lets pass what the agent still answers to those who were there before (guest-sync). */
async function synchronize(
  write: (command: string, args: Readonly<Record<string, unknown>>) => void,
  lines: AsyncIterator<string>,
): Promise<void> {
  const id = Math.floor(Math.random() * 2 ** 31);
  write('guest-sync', { id });
  for (;;) {
    const answer = await next(lines);
    if ('return' in answer && answer.return === id) return;
  }
}

function answers(socket: Socket, signal: AbortSignal): AsyncIterator<string> {
  // A reset of the guest ends no connection to the host's end of the port: only the signal ends the wait.
  signal.addEventListener('abort', () => socket.destroy(signal.reason as Error), { once: true });
  return createInterface(socket)[Symbol.asyncIterator]();
}

async function next(lines: AsyncIterator<string>): Promise<z.infer<typeof Answer>> {
  const line = await lines.next();
  if (line.done === true) throw new Error('the guest agent was cut off');
  return Answer.parse(JSON.parse(line.value));
}
