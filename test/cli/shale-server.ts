import { subscribe } from 'node:diagnostics_channel';
import type { Socket } from 'node:net';
import { Readable } from 'node:stream';
import { runProgram } from '../../cli/program.ts';
import type { ShaleCall, ShaleRun } from './shale-process.ts';

/**
 * Runs one command of shale after another in one process: what a test asks of a command is cheap, and starting a
 * process for each is most of its time. It ends with the process that started it.
 */

/** A process that ends closes its connections; kept open, they would hold up the end of the server at the other end. */
const connections = new Set<Socket>();
subscribe('net.client.socket', (message) => {
  const { socket } = message as { socket: Socket };
  connections.add(socket);
  socket.once('close', () => connections.delete(socket));
});

const realEnvironment = { ...process.env };

async function run({ args, input, env }: ShaleCall): Promise<ShaleRun> {
  const written = { stdout: '', stderr: '' };
  const restore = (['stdout', 'stderr'] as const).map((name) => {
    const { write } = process[name];
    process[name].write = ((chunk: string | Uint8Array, ...rest: unknown[]) => {
      written[name] += typeof chunk === 'string' ? chunk : Buffer.from(chunk).toString();
      const done = rest.findLast((argument) => typeof argument === 'function');
      if (done !== undefined) process.nextTick(done);
      return true;
    }) as typeof write;
    return () => {
      process[name].write = write;
    };
  });
  process.argv = [process.execPath, 'shale', ...args];
  process.env = { ...realEnvironment, ...env };
  process.exitCode = undefined;
  const stdin = Readable.from(input === undefined ? [] : [Buffer.from(input)]);
  Object.defineProperty(process, 'stdin', { value: stdin, configurable: true });
  try {
    await runProgram();
    const exitCode = Number(process.exitCode ?? 0);
    // What execa gives, too: without the last line's end.
    const [stdout, stderr] = [written.stdout, written.stderr].map((text) => text.replace(/\n$/, ''));
    return { stdout: stdout ?? '', stderr: stderr ?? '', exitCode };
  } finally {
    for (const each of restore) each();
    for (const socket of connections) socket.destroy();
    // Nor are its handlers left, which Node warns of after ten commands.
    for (const name of ['SIGINT', 'SIGTERM']) process.removeAllListeners(name);
    process.exitCode = 0;
  }
}

let last: Promise<unknown> = Promise.resolve();
process.on('message', ({ id, call }: { id: number; call: ShaleCall }) => {
  last = last.then(async () => process.send?.({ id, run: await run(call) }));
});
process.on('disconnect', () => process.exit());
