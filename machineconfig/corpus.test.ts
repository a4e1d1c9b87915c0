import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { MachineConfig } from '../api/machine-config.ts';
import { MachineConfigSpec } from '../api/machine-config.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { renderPool } from './render.ts';
import { pool } from './testdata/build.ts';

/** Realistic MachineConfigs, one file each. Their names describe their content. */
const folder = new URL('testdata/corpus/', import.meta.url);
const corpus = readdirSync(folder)
  .toSorted()
  .map((name) => ({ name, config: parse(readFileSync(new URL(name, folder), 'utf8')) as MachineConfig }));

function nodeConfig(configs: readonly MachineConfig[]) {
  const rendering = renderPool({ pool: pool('all'), configs, controllerVersion: 'test' });
  if (!rendering.ok) throw new Error(JSON.stringify(rendering.problems, undefined, 2));
  const parsed = parseNodeConfig(rendering.rendered);
  if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems, undefined, 2));
  return parsed.config;
}

function text(config: ReturnType<typeof nodeConfig>, path: string): string {
  return Buffer.from(config.files.get(path)?.contents ?? []).toString();
}

describe('the corpus', () => {
  it('is not empty', () => {
    expect(corpus.length).toBeGreaterThanOrEqual(40);
  });

  it.each(corpus)('$name passes admission, renders and can be parsed again', ({ config }) => {
    // Go reads keys in any case; a schema of the API can only refuse what it knows.
    expect(MachineConfigSpec.safeParse(config.spec)).toMatchObject({ success: true });
    const { name } = nodeConfig([config]);
    expect(name).toMatch(/^rendered-all-/);
  });

  it('renders all together', () => {
    const all = nodeConfig(corpus.map(({ config }) => config));
    expect(all.sshKeys.get('core')?.map((key) => key.split(' ').at(-1))).toEqual([
      'ada@example.org',
      'grace@example.org',
      'joan@example.org',
    ]);
    // Worker's configs come first, so infra's unmasking wins whatever its name.
    expect(all.units.get('rpcbind.service')).toMatchObject({ masked: false, enabled: true });
    expect(all.units.get('systemd-resolved.service')).toMatchObject({ masked: true, enabled: false });
    expect([...(all.units.get('crio.service')?.dropins.keys() ?? [])]).toEqual([
      '20-log.conf',
      '30-limits.conf',
      '10-default-env.conf',
    ]);
    expect(text(all, '/etc/chrony.conf')).toBe('server 192.0.2.1 iburst\ndriftfile /var/lib/chrony/drift\n');
    expect(text(all, '/etc/tuned/active_profile')).toBe('latency');
    expect(text(all, '/etc/case')).toBe('case');
    expect(text(all, '/etc/hosts.d/blocked').split('\n')).toHaveLength(4001);
    expect([...(all.units.get('tuned.service')?.dropins.keys() ?? [])]).toEqual(['20-b.conf', '10-a.conf']);
    expect(all.kernelType).toBe('realtime');
    expect(all.kernelArguments).toContain('dyndbg="file drivers/usb/* +p; module nvme +p"');
    expect(all.extensions).toEqual(['usbguard', 'sandboxed-containers', 'sysstat']);
    expect(all.osImageURL).toMatch(/^registry\.example\.org\/os\/custom@sha256:5{64}$/);
    expect(all.links.get('/etc/localtime')).toMatchObject({ target: '../usr/share/zoneinfo/Europe/Vienna' });
    expect(all.directories.get('/var/lib/inventory')).toMatchObject({ user: { name: 'core' } });
  });
});
