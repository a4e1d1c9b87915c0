/** What `-o json` prints is what the published schemas promise, for each command. */
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { ClusterPolicies } from '../../api/disruption-policy.ts';
import { DiffOutput, ImageDiffOutput, PlanOutput } from '../../cli/command-line/output-schemas.ts';
import { DoctorOutput } from '../../cli/doctor/finding.ts';
import { ExplainOutput } from '../../cli/explain-command.ts';
import { FleetPlanOutput } from '../../cli/fleet/fleet-plan.ts';
import { FleetStatusOutput } from '../../cli/fleet/fleet-status.ts';
import { HistoryOutput } from '../../cli/history/pool-history.ts';
import { ImageOutput } from '../../cli/image/image-view.ts';
import { MaintenanceOutput } from '../../cli/maintenance/maintenance-command.ts';
import { NodeImageOutput } from '../../cli/node/node-image.ts';
import { StatusOutput } from '../../cli/observe/status-view.ts';
import { RenderOutput } from '../../cli/render-command.ts';
import { ValidateOutput } from '../../cli/validate-command.ts';
import { VersionOutput } from '../../cli/version/version-skew.ts';
import { root, shale } from './shale-process.ts';

describe('-o json', () => {
  test.each<[string, z.ZodType, string[]]>([
    ['plan', PlanOutput, ['plan', '--from', 'examples', '-f', 'examples/tour/mixed.yaml']],
    ['diff', DiffOutput, ['diff', '--from', 'examples', '-f', 'examples/tour/mixed.yaml']],
    ['validate', ValidateOutput, ['validate', '-f', 'examples']],
    ['render', RenderOutput, ['render', '--pool', 'worker', '-f', 'examples']],
    ['policies', ClusterPolicies, ['policies', '-f', 'examples']],
  ])('of %s is as promised', async (_, schema, args) => {
    const { stdout } = await shale([...args, '-o', 'json']);
    expect(schema.safeParse(JSON.parse(stdout)).error).toBeUndefined();
  });

  test.each<[string, z.ZodType]>([
    ['plan', PlanOutput],
    ['diff', DiffOutput],
    ['validate', ValidateOutput],
    ['status', StatusOutput],
    ['status --clusters', FleetStatusOutput],
    ['plan --clusters', FleetPlanOutput],
    ['history', HistoryOutput],
    ['node image', NodeImageOutput],
    ['doctor', DoctorOutput],
    ['explain', ExplainOutput],
    ['maintenance list', MaintenanceOutput],
    ['image inspect', ImageOutput],
    ['image diff', ImageDiffOutput],
    ['version', VersionOutput],
  ])('has each field of %s in the reference', async (_, schema) => {
    const reference = await readFile(path.join(root, 'docs/reference/cli.md'), 'utf8');
    const fields = fieldsOf(z.toJSONSchema(schema));
    expect(fields.length).toBeGreaterThan(1);
    expect(fields.filter((field) => !reference.includes(`\`${field}\``))).toEqual([]);
  });
});

/** @returns names of all properties, however deep. */
function fieldsOf(schema: unknown): string[] {
  if (Array.isArray(schema)) return schema.flatMap(fieldsOf);
  if (typeof schema !== 'object' || schema === null) return [];
  return Object.entries(schema).flatMap(([key, value]) =>
    key === 'properties' && typeof value === 'object' && value !== null
      ? [...Object.keys(value), ...Object.values(value).flatMap(fieldsOf)]
      : fieldsOf(value),
  );
}
