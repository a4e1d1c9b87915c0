import { exitCodes } from './exit-codes.ts';

/**
 * Ends the process quietly when the reader of its output is gone, as in `shale plan | head -1`. Node.js ignores
 * SIGPIPE, which ends other programs (signal(7)); the exit code is what a shell reports for it.
 */
export function endWithReader(): void {
  for (const stream of [process.stdout, process.stderr]) {
    if (!stream.listeners('error').includes(onError)) stream.on('error', onError);
  }
}

function onError(error: NodeJS.ErrnoException): void {
  if (error.code === 'EPIPE') process.exit(exitCodes.brokenPipe);
  throw error;
}
