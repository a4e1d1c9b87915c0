import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { bootMachine } from '../../workshop/sandbox/systemd-node/machine.ts';
import { deadline } from '../fixtures/patience.ts';

/**
 * Boots a machine, prints its init's process id and waits to be killed: argv has the root and a directory for its
 * console.
 */
const [root, directory] = process.argv.slice(2);
if (root === undefined || directory === undefined) throw new Error('expected a root and a directory');
const machine = await bootMachine({
  root,
  nspawnArguments: ['--volatile=overlay'],
  consoleFile: path.join(directory, 'console'),
  signal: deadline(60_000),
});
process.stdout.write(`${machine.leader}\n`);
await delay(60_000);
await machine.kill();
