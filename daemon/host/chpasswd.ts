import type { RunOsCommand } from '../os/os-command.ts';
import type { SetPasswords } from '../standard/passwords.ts';

/** The lock that passwd(1) and others hold while they write is waited for (lckpwdf(3): 15 s). */
const TIMEOUT_MS = 60_000;

/**
 * Sets password hashes by chpasswd(8), on a host and on a directory alike. An own edit of /etc/shadow would be as atomic,
 * but couldn't keep passwd(1) or useradd(8) out meanwhile: their lock is one of fcntl(2), which Node hasn't got. And it
 * knows the file's SELinux label. Hashes go through its standard input: arguments are there for everybody to read.
 *
 * @param run runs commands in the host's namespaces.
 * @param commandPath where those commands see what the daemon sees there.
 */
export function chpasswd(
  run: RunOsCommand,
  commandPath: (place: string) => string = (place) => place,
): SetPasswords {
  return async (root, fields, signal) => {
    if (fields.size === 0) return;
    const input = [...fields].map(([user, field]) => `${user}:${field}\n`).join('');
    await run(['chpasswd', '--encrypted', '--root', commandPath(root)], {
      timeoutMs: TIMEOUT_MS,
      input,
      signal,
    });
  };
}
