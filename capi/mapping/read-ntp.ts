import { posix } from 'node:path';
import { z } from 'zod';
import { canonicalJson } from '../../machineconfig/canonical-json.ts';
import type { Json } from '../contract/machine-objects.ts';
import type { MachineFile, Writable } from './machine-parts.ts';

/** `spec.ntp` of a KubeadmConfig. */
const Ntp = z.strictObject({ servers: z.array(z.string()).optional(), enabled: z.boolean().optional() });

/** What else would become a directive of its own in the file. */
const SERVER = /^[A-Za-z0-9][A-Za-z0-9.:_-]*$/;

/**
 * @param ntp `spec.ntp`. @param path the setting ntpFile; its name decides the format.
 * @returns the file that has these servers.
 */
export function readNtp(ntp: Json, path: string | undefined): Writable<MachineFile> {
  const refused = (why: string) => ({ kind: 'refused', raw: canonicalJson(ntp), why }) as const;
  const parsed = Ntp.safeParse(ntp);
  if (!parsed.success) return refused('it has a field or value that Shale does not know');
  const { servers = [], enabled = true } = parsed.data;
  if (!enabled) return refused('Shale does not disable services; name that unit in a MachineConfig');
  if (servers.length === 0) return refused('it names no server');
  if (!servers.every((server) => SERVER.test(server)))
    return refused('a server is neither a name nor an address');
  if (path === undefined)
    return refused('the ExtensionConfig has no setting ntpFile that names the file of the servers');
  const text = textOf(path, servers);
  if (text === undefined) {
    return refused(
      'the setting ntpFile names neither chrony.conf, a .sources file of chrony nor a file of timesyncd',
    );
  }
  const content = Buffer.from(text).toString('base64');
  return { kind: 'writable', value: { path, mode: 0o644, user: 'root', group: 'root', content } };
}

/** What cloud-init writes to chrony.conf beside the servers (templates/chrony.conf), without what differs by host. */
const CHRONY = ['driftfile /var/lib/chrony/drift', 'makestep 1.0 3', 'rtcsync', 'logdir /var/log/chrony'];

/** @returns undefined where the name of the file tells no format. */
function textOf(path: string, servers: readonly string[]): string | undefined {
  const name = posix.basename(path);
  const directives = servers.map((server) => `server ${server} iburst`);
  if (name === 'chrony.conf') return lines([...directives, ...CHRONY]);
  if (name.endsWith('.sources')) return lines(directives);
  const isTimesyncd = name === 'timesyncd.conf' || posix.dirname(path).endsWith('/timesyncd.conf.d');
  return isTimesyncd && name.endsWith('.conf') ? lines(['[Time]', `NTP=${servers.join(' ')}`]) : undefined;
}

function lines(all: readonly string[]): string {
  return `${all.join('\n')}\n`;
}
