/** Argo CD's Lua scripts, run by a Lua interpreter on objects that Shale writes. */
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { execa } from 'execa';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { crdDefinitions } from '../../api/crd-definitions.ts';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import { MachineOSBuilds } from '../../api/machine-os-build.ts';
import type { Kind, KubernetesObject } from '../../api/object.ts';
import { BUILD_MOMENTS, POOL_MOMENTS } from './gitops-moments.ts';
import { isOnPath } from './on-path.ts';

const FILE = path.join(import.meta.dirname, '../../examples/gitops/argocd-cm.yaml');
const HEALTH = 'resource.customizations.health.';
/** Of the version of Lua that Argo CD has (gopher-lua is Lua 5.1). */
const LUA = 'lua5.1';

const ConfigMap = z.object({ data: z.record(z.string(), z.string()) });
const { data } = ConfigMap.parse(parse(readFileSync(FILE, 'utf8')));

type Named = Pick<Kind<KubernetesObject>, 'group' | 'kind'>;
const keyOf = ({ group, kind }: Named) => `${HEALTH}${group}_${kind}`;

/** @returns a value as Lua writes it: a list begins with 1, and nil is what is not there. */
function luaOf(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(luaOf).join(', ')}}`;
  if (typeof value === 'object' && value !== null) {
    return `{${Object.entries(value)
      .map(([field, each]) => `[${JSON.stringify(field)}] = ${luaOf(each)}`)
      .join(', ')}}`;
  }
  return value === undefined || value === null ? 'nil' : JSON.stringify(value);
}

/** @returns what the health check of a kind says of objects, in their order. */
async function healthOf(kind: Named, objects: readonly KubernetesObject[]): Promise<readonly string[]> {
  const check = `local function check(obj)\n${data[keyOf(kind)] ?? ''}\nend`;
  const calls = objects.map(
    (object) => `local h = check(${luaOf(object)}); print(h.status, h.message ~= nil and h.message ~= "")`,
  );
  const input = [check, ...calls.map((call) => `do ${call} end`)].join('\n');
  const { stdout } = await execa(LUA, ['-'], { input });
  return stdout.split('\n');
}

test('the health of every kind whose status is about its spec is there', () => {
  const kinds = Object.keys(data).filter((key) => key.startsWith(HEALTH));
  const known = crdDefinitions.map(({ kind }) => keyOf(kind));
  expect(known).toEqual(expect.arrayContaining(kinds));
  // One text for all: what is tried with some of them is true of each.
  expect(new Set(kinds.map((key) => data[key])).size).toBe(1);
});

test.skipIf(!isOnPath(LUA))('Argo CD reads the health of pools and builds, each with a message', async () => {
  const pools = await healthOf(
    MachineConfigPools,
    POOL_MOMENTS.map(([, pool]) => pool),
  );
  expect(Object.fromEntries(POOL_MOMENTS.map(([what], index) => [what, pools[index]]))).toEqual(
    Object.fromEntries(POOL_MOMENTS.map(([what, , , argo]) => [what, `${argo}\ttrue`])),
  );
  const builds = await healthOf(
    MachineOSBuilds,
    BUILD_MOMENTS.map(([, build]) => build),
  );
  expect(Object.fromEntries(BUILD_MOMENTS.map(([what], index) => [what, builds[index]]))).toEqual(
    Object.fromEntries(BUILD_MOMENTS.map(([what, , argo]) => [what, `${argo}\ttrue`])),
  );
});
