import { setTimeout as delay } from 'node:timers/promises';
import { OsCommandError, type RunOsCommand } from '../os-command.ts';

/** The kernel refuses the mount for moments only; what lasts longer needs the daemon's next attempt. */
const ATTEMPTS = 5;
const PAUSE_MS = 200;

/**
 * On a host whose /sysroot is read-only each ostree command first remounts it for itself. On busy machines the kernel refused
 * that now and then with EBUSY (seen with ostree 2022.7 and Linux 6). ostree has done nothing by then, so the command is run again.
 *
 * @returns a runner that does so; every other failure, and the last of these, reaches the caller.
 */
export function retryRemount(run: RunOsCommand): RunOsCommand {
  return async (command, options) => {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await run(command, options);
      } catch (error) {
        if (attempt === ATTEMPTS || !isBusyRemount(error)) throw error;
        await delay(PAUSE_MS, undefined, { signal: options.signal });
      }
    }
  };
}

/** ostree, src/ostree/ot-main.c: "Remounting /sysroot read-write". */
function isBusyRemount(error: unknown): boolean {
  return (
    error instanceof OsCommandError &&
    error.stderr.includes('Remounting /sysroot read-write: Device or resource busy')
  );
}
