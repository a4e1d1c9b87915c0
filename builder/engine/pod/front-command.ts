import { once } from 'node:events';
import { Command, Option } from 'commander';
import { untilShutDown, wholeNumber } from '../../../cluster/process.ts';
import { ENGINE_PORT } from '../engine-access.ts';
import { type EngineFrontOptions, startEngineFront } from './engine-front.ts';

/** `shale engine-front`: the container in front of an engine in a pod. */
export function engineFrontCommand(): Command {
  return new Command('engine-front')
    .description(
      "Serve a container engine's socket over TLS to clients with a certificate; runs in the pods of builds.",
    )
    .requiredOption('--socket <file>', 'Unix socket of the engine')
    .requiredOption('--tls-dir <dir>', 'directory with ca.crt, tls.crt and tls.key')
    .addOption(new Option('--address <address>', 'address to listen on').env('POD_IP').default('127.0.0.1'))
    .option('--port <port>', 'port to listen on', wholeNumber(0, 65_535), ENGINE_PORT)
    .action((options: EngineFrontOptions) =>
      untilShutDown(async (signal) => {
        const front = await startEngineFront(options);
        if (!signal.aborted) await once(signal, 'abort');
        await front.close();
      }),
    );
}
