import { createHash } from 'node:crypto';

/** The word of an authorized_keys line that is the key itself: RFC 4253 in base64, from the length of its type on. */
const KEY = /(?<=^|\s)AAAA[A-Za-z0-9+/]+=*(?=\s|$)/;

/**
 * An authorized key with its fingerprint, as `ssh-keygen -l` prints it, in place of the key: two can be told apart at a
 * glance.
 *
 * @param line of authorized_keys (sshd(8)): options, type, key, comment.
 * @returns the line itself where it holds no key.
 */
export function withFingerprint(line: string): string {
  return line.replace(KEY, (key) => {
    const digest = createHash('sha256').update(Buffer.from(key, 'base64')).digest('base64');
    return `SHA256:${digest.replace(/=+$/, '')}`;
  });
}
