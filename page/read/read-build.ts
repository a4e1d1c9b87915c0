import type { BuildConditionType, MachineOSBuild } from '../../api/machine-os-build.ts';
import { labels } from '../../api/names.ts';
import type { Condition } from '../../api/object.ts';
import { conditionIsTrue } from '../../cluster/update-object.ts';
import type { BuildRow, BuildStateName } from '../model/view.ts';

/** How a build is by the first of its conditions that is True; the ends of builds come first. */
const STATES: readonly (readonly [BuildConditionType, BuildStateName])[] = [
  ['Succeeded', 'succeeded'],
  ['Failed', 'failed'],
  ['Interrupted', 'interrupted'],
  ['Building', 'building'],
];

export function buildRow({ metadata, spec, status }: MachineOSBuild): BuildRow {
  const found = STATES.find(([type]) => conditionIsTrue(status?.conditions, type));
  const message = remark(status?.conditions?.find(({ type }) => type === found?.[0]));
  const start = time(status?.buildStart);
  const end = time(status?.buildEnd);
  return {
    pool: metadata.labels?.[labels.targetPool] ?? spec.machineOSConfig.name,
    config: spec.machineConfig.name,
    state: found?.[1] ?? 'pending',
    ...(message === undefined || message === '' ? {} : { message }),
    created: time(metadata.creationTimestamp) ?? 0,
    ...(start === undefined ? {} : { start }),
    ...(end === undefined ? {} : { end }),
    ...(status?.builder === undefined ? {} : { way: status.builder.imageBuilderType }),
    ...(status?.attempts === undefined ? {} : { attempts: status.attempts }),
    ...(status?.digestedImagePushSpec === undefined ? {} : { image: status.digestedImagePushSpec }),
    ...(status?.baseImage === undefined ? {} : { baseImage: status.baseImage }),
    transitions: status?.transitions ?? [],
  };
}

/** What a condition says beyond its name. */
function remark(condition: Condition | undefined): string | undefined {
  return condition?.type === 'Building' && condition.reason === 'Building' ? undefined : condition?.message;
}

function time(text: string | undefined): number | undefined {
  const value = Date.parse(text ?? '');
  return Number.isNaN(value) ? undefined : value;
}
