import type { MachineConfig } from '../../api/machine-config.ts';
import type { PoolRevision } from '../../api/pool-revision.ts';
import { aRenderedConfig } from '../fixtures/objects.ts';

/** The MachineConfigs that a pool of the fleet is rendered from, without the name of the pool. */
export const SOURCES = ['50-chrony', '90-sysctl', '99-registry'];

/** A secret in a file that only root may read: no page may show it. */
export const FLEET_SECRET = 'c2VjcmV0LW9mLXRoZS1mbGVldA';

/** @returns the rendered configs before and after the change, and the MachineConfigs of the later one. */
export function configsOf(pool: string): MachineConfig[] {
  const file = (path: string, text: string, mode = 0o644) => ({
    path,
    mode,
    contents: { source: `data:,${encodeURIComponent(text)}` },
  });
  const config = (name: string, files: { path: string }[]): MachineConfig => ({
    ...aRenderedConfig(name),
    spec: { config: { ignition: { version: '3.5.0' }, storage: { files } } },
  });
  const chrony = file('/etc/chrony.conf', 'server time.example.com iburst\nmakestep 1.0 3\n');
  const inotify = (watches: number) =>
    file('/etc/sysctl.d/90-inotify.conf', `fs.inotify.max_user_watches=${watches}\n`);
  const auth = (text: string) => file('/etc/containers/auth.json', text, 0o600);
  const after = [chrony, inotify(524_288), auth(`{"auths":{"r":{"auth":"${FLEET_SECRET}"}}}\n`)];
  const before = [
    file('/etc/chrony.conf', 'server old.example.com iburst\nmakestep 1.0 3\n'),
    inotify(8_192),
    auth('{}\n'),
  ];
  return [
    config(`rendered-${pool}-1a2b3c4d`, before),
    config(`rendered-${pool}-9f8e7d6c`, after),
    ...SOURCES.map((name, index) => config(`${name}-${pool}`, after.slice(index, index + 1))),
  ];
}

/** @returns the operator's record of both; without owners, which a cluster adds. */
export function revisionsOf(pool: string): PoolRevision[] {
  return ['1a2b3c4d', '9f8e7d6c'].map((hash, index) => ({
    apiVersion: 'shale.dev/v1',
    kind: 'PoolRevision',
    metadata: { name: `${pool}-${hash}` },
    spec: {
      machineConfigPool: { name: pool },
      revision: index + 12,
      machineConfig: { name: `rendered-${pool}-${hash}` },
    },
  }));
}
