import { readFileSync } from 'node:fs';
import path from 'node:path';
import { expect, test } from 'vitest';
import { parse } from 'yaml';
import { z } from 'zod';
import { MachineConfigPools } from '../../api/machine-config-pool.ts';
import type { KubernetesObject } from '../../api/object.ts';
import { celValue, compileExpression } from '../../workshop/apiserver/schema/cel/expressions.ts';
import { POOL_MOMENTS } from './gitops-moments.ts';

const FLUX = path.join(import.meta.dirname, '../../examples/gitops/flux.yaml');

const Health = z.object({
  apiVersion: z.string(),
  kind: z.string(),
  inProgress: z.string(),
  failed: z.string(),
  current: z.string(),
});
const Kustomization = z.object({ spec: z.object({ healthCheckExprs: z.array(Health) }) });

const { healthCheckExprs } = Kustomization.parse(parse(readFileSync(FLUX, 'utf8'))).spec;

/**
 * What Flux says of an object (fluxcd/pkg, runtime/cel/status_evaluator.go): the first expression that is true, in this
 * order; one that can't be evaluated makes it unknown, which Flux waits for as for one in progress.
 */
function fluxHealth(
  { inProgress, failed, current }: z.infer<typeof Health>,
  object: KubernetesObject,
): string {
  const fields = Object.keys(object);
  const variables = Object.fromEntries(
    Object.entries(object).map(([field, value]) => [field, celValue(JSON.parse(JSON.stringify(value)))]),
  );
  const { generation } = object.metadata;
  const observed = (object as { readonly status?: { readonly observedGeneration?: number } }).status
    ?.observedGeneration;
  if (observed !== undefined && generation !== undefined && observed !== generation) return 'InProgress';
  try {
    const holds = (expression: string) => compileExpression(expression, fields)(variables) === true;
    if (holds(inProgress)) return 'InProgress';
    if (holds(failed)) return 'Failed';
    return holds(current) ? 'Current' : 'InProgress';
  } catch {
    return 'Unknown';
  }
}

test.each(POOL_MOMENTS)('in Flux, a pool %s', (_, pool, health) => {
  const [checked, ...others] = healthCheckExprs;
  expect(others).toEqual([]);
  const { group, version, kind } = MachineConfigPools;
  expect(checked).toMatchObject({ apiVersion: `${group}/${version}`, kind });
  if (checked !== undefined) expect(fluxHealth(checked, pool)).toBe(health);
});
