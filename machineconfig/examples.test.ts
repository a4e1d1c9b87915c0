import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import type { MachineConfig } from '../api/machine-config.ts';
import { parseNodeConfig } from './parse-node-config.ts';
import { renderPool } from './render.ts';
import { pool } from './testdata/build.ts';

/** Every example renders, alone and all together. */
const examples = new URL('../examples/', import.meta.url);
const objects = ['', 'tour/', 'butane/'].flatMap((folder) =>
  readdirSync(new URL(folder, examples))
    .filter((name) => name.endsWith('.yaml'))
    .map((name) => ({ name: `${folder}${name}`, object: read(new URL(`${folder}${name}`, examples)) })),
);
const machineConfigs = objects.filter(({ object }) => object.kind === 'MachineConfig');

function read(url: URL): MachineConfig {
  return parse(readFileSync(url, 'utf8')) as MachineConfig;
}

describe('examples', () => {
  it.each(machineConfigs)('$name renders and can be read back', ({ object }) => {
    const rendering = renderPool({ pool: pool('worker'), configs: [object], controllerVersion: 'test' });
    expect(rendering).toMatchObject({ ok: true });
    expect(rendering.ok && parseNodeConfig(rendering.rendered)).toMatchObject({ ok: true });
  });

  it('render together for worker and for infra, which overrides', () => {
    const configs = machineConfigs.filter(({ name }) => !name.includes('/')).map(({ object }) => object);
    const rendering = renderPool({ pool: pool('infra'), configs, controllerVersion: 'test' });
    if (!rendering.ok) throw new Error(JSON.stringify(rendering.problems));
    const parsed = parseNodeConfig(rendering.rendered);
    if (!parsed.ok) throw new Error(JSON.stringify(parsed.problems));
    const text = (path: string) => Buffer.from(parsed.config.files.get(path)?.contents ?? []).toString();
    expect(rendering.sources.at(-1)).toBe('85-infra-registry-limits');
    expect(text('/etc/sysctl.d/90-shale.conf')).toContain('Infra nodes serve images');
    expect(text('/etc/motd.d/50-configured-by.motd')).toMatch(/^This node is configured by the cluster\./);
    expect([...parsed.config.units.keys()]).toEqual(['node-inventory.service', 'chronyd.service']);
    expect(parsed.config.kernelArguments).toEqual(['audit=1', 'audit_backlog_limit=8192']);
  });
});
