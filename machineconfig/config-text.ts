import { createHash } from 'node:crypto';
import { by } from '../api/order.ts';
import type { ConfigChange, NodeConfig, NodeFile, NodeUnit, Owner } from './node-config.ts';

type Side = 'before' | 'after';

/** @returns a name for what changed, for people. */
export function subjectOf(change: ConfigChange): string {
  switch (change.kind) {
    case 'file':
    case 'directory':
    case 'link':
      return change.path;
    case 'unit':
      return change.name;
    case 'sshKey':
      return `SSH keys of ${change.user}`;
    case 'passwordHash':
      return `password of ${change.user}`;
    case 'field':
      return change.field;
  }
}

/**
 * @param side which of the two configs this is: the text of a secret only shows that it differs from the other side's.
 * @returns the config's state of the subject as lines to compare: attributes first, then decoded contents; '' when the
 *   config doesn't have it. Password hashes are omitted, and SSH keys are replaced by their fingerprints.
 */
export function textOf(config: NodeConfig, change: ConfigChange, side: Side): string {
  switch (change.kind) {
    case 'file':
      return fileText(config.files.get(change.path));
    case 'directory': {
      const directory = config.directories.get(change.path);
      return directory === undefined ? '' : attributes(directory.mode, directory.user, directory.group);
    }
    case 'link': {
      const link = config.links.get(change.path);
      return link === undefined ? '' : `# ${link.hard ? 'hard link' : 'link'} to ${link.target}\n`;
    }
    case 'unit':
      return unitText(config.units.get(change.name));
    case 'sshKey':
      return lines((config.sshKeys.get(change.user) ?? []).map(withFingerprint));
    case 'passwordHash':
      if (!config.passwordHashes.has(change.user)) return '';
      return side === 'after' && change.change === 'changed'
        ? '# another password hash\n'
        : '# a password hash\n';
    case 'field':
      return lines([config[change.field]].flat().map(String));
  }
}

const lines = (list: readonly string[]): string => list.map((line) => `${line}\n`).join('');

function attributes(mode: number, user: Owner, group: Owner): string {
  const name = (owner: Owner) => ('id' in owner ? String(owner.id) : owner.name);
  return `# mode ${mode.toString(8).padStart(4, '0')}, owner ${name(user)}:${name(group)}\n`;
}

function fileText(file: NodeFile | undefined): string {
  if (file === undefined) return '';
  const head = attributes(file.mode, file.user, file.group);
  const text = decode(file.contents);
  if (text !== undefined) return `${head}${text}`;
  const hash = createHash('sha256').update(file.contents).digest('hex');
  return `${head}# ${file.contents.length} bytes, sha256 ${hash}\n`;
}

/** @returns undefined when the contents are not UTF-8. */
function decode(contents: Uint8Array): string | undefined {
  try {
    const text = new TextDecoder('utf-8', { fatal: true }).decode(contents);
    return text.includes('\0') ? undefined : text;
  } catch {
    return undefined;
  }
}

function unitText(unit: NodeUnit | undefined): string {
  if (unit === undefined) return '';
  const state = unit.enabled === undefined ? 'left as it is' : unit.enabled ? 'enabled' : 'disabled';
  const dropins = [...unit.dropins].sort(by(([name]) => name));
  return [
    `# ${state}${unit.masked ? ', masked' : ''}\n`,
    unit.contents ?? '',
    ...dropins.map(([name, contents]) => `# drop-in ${name}\n${contents}`),
  ].join('');
}

/** The word of an authorized_keys line that is the key itself: RFC 4253 in base64, from the length of its type on. */
const KEY = /(?<=^|\s)AAAA[A-Za-z0-9+/]+=*(?=\s|$)/;

/**
 * Replaces an authorized key by its fingerprint, as `ssh-keygen -l` prints it, so that two keys are easy to
 * distinguish.
 *
 * @param line of authorized_keys (sshd(8)): options, type, key, comment.
 * @returns the line itself when it contains no key.
 */
function withFingerprint(line: string): string {
  return line.replace(KEY, (key) => {
    const digest = createHash('sha256').update(Buffer.from(key, 'base64')).digest('base64');
    return `SHA256:${digest.replace(/(?<!=)=+$/, '')}`;
  });
}
