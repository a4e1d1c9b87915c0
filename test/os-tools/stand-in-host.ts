import type { DigestedPullspec } from '../../api/references.ts';
import { OsCommandError, osCommandRunner, type RunOsCommand } from '../../daemon/os/os-command.ts';
import type { ImageSource } from '../../daemon/os/ostree/image-source.ts';
import { type MemoryImage, memorySource } from '../../workshop/sandbox/node/memory-source.ts';
import { nameOfImage } from '../fixtures/test-node.ts';
import { STAND_INS } from './booted-root.ts';
import { writeImage } from './image-store.ts';
import { Refusal, runCommand, StandIn, type StandInCommands } from './stand-in.ts';

/** What the registry of a stand-in's machine has. */
interface ServedImages {
  readonly source: ImageSource;
  add(image: MemoryImage): Promise<DigestedPullspec>;
}

/** @param dir of the machine. @param stock the image that it was installed from. */
export function servedImages(dir: string, stock: MemoryImage): ServedImages {
  const images = new Map([[nameOfImage(stock), stock]]);
  return {
    source: memorySource(images),
    add: async (image) => {
      const pullspec = nameOfImage(image);
      images.set(pullspec, image);
      await writeImage(dir, pullspec, image);
      return pullspec;
    },
  };
}

/**
 * @param dir of the machine. @param standIns commands of stand-ins, by program.
 * @returns a runner of the machine's commands. Stand-ins run in this process, because starting one of Node's for each
 *   command is most of what a test would cost; scripts of the host find them on the path.
 */
export function standInRunner(
  dir: string,
  standIns: Readonly<Record<string, StandInCommands>>,
): RunOsCommand {
  const spawn = osCommandRunner([
    'env',
    `STAND_IN_NODE=${dir}`,
    `STAND_IN_RUNTIME=${process.execPath}`,
    `STAND_IN_PATH=${process.env['PATH']}`,
    `PATH=${STAND_INS}:${process.env['PATH']}`,
  ]);
  return async (command, options) => {
    const [program, name = '', ...args] = command;
    const commands = standIns[program];
    if (commands === undefined) return spawn(command, options);
    options.signal.throwIfAborted();
    const signal = AbortSignal.any([options.signal, AbortSignal.timeout(options.timeoutMs)]);
    try {
      return (await runCommand(commands, new StandIn(dir, signal), name, args)).replace(/\n$/, '');
    } catch (error) {
      options.signal.throwIfAborted();
      const stderr = error instanceof Refusal ? error.message : String(error);
      const exitCode = error instanceof Refusal ? error.exitCode : 1;
      throw new OsCommandError(command, `exit code ${exitCode}`, { exitCode, stderr }, { cause: error });
    }
  };
}
