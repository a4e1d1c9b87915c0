import { type DescribedName, describedImageLabels, describedLabels } from '../../api/described-labels.ts';
import { describedEvents } from '../../api/events.ts';
import { serviceConfigConditions } from '../../api/kubelet-config.ts';
import { nodeConditions } from '../../api/machine-config-node.ts';
import { poolConditions } from '../../api/machine-config-pool.ts';
import { buildConditions, buildFailures } from '../../api/machine-os-build.ts';
import { machineOSConfigConditions } from '../../api/machine-os-config.ts';
import { describedAnnotations } from '../../api/names.ts';
import { readinessConditions } from '../../api/object.ts';
import { exitCodeMeanings, exitCodes } from '../../cli/command-line/exit-codes.ts';
import { code, page, table } from './markdown.ts';

/** Pages that list the words which Shale shares with people and other programs, each from where the code takes them. */

export function namesPage(): string {
  return page('Labels and annotations', 'api/names.ts', [
    'Those under `machineconfiguration.openshift.io` are MCO’s and have the same meaning as there. Settings of a pool are [fields of the MachineConfigPool](kinds/machineconfigpool.md); for what each setting of a node does, see [The operator](operator.md).',
    '## Annotations',
    namesTable(describedAnnotations),
    '## Labels',
    namesTable(describedLabels),
    '## Labels of an image',
    'In addition to those of OCI; see [Supply chain](../supply-chain.md).',
    namesTable(describedImageLabels),
  ]);
}

function namesTable(names: Readonly<Record<string, DescribedName>>): string {
  const rows = Object.values(names).map(({ name, on, meaning }) => [code(name), on, meaning]);
  return table(['name', 'on', 'meaning'], rows);
}

export function conditionsPage(): string {
  const of = (conditions: Readonly<Record<string, string>>) =>
    table(
      ['condition', 'meaning if True'],
      Object.entries(conditions).map(([type, meaning]) => [code(type), meaning]),
    );
  return page('Conditions', 'api/', [
    'In `status.conditions`. Each has a reason in CamelCase and a message; `kubectl wait --for=condition=TYPE` waits for one.',
    '## Of every kind',
    'MachineConfigPool, MachineConfigNode, MachineOSConfig, MachineOSBuild, MachineConfiguration, KubeletConfig and ContainerRuntimeConfig have these beside their own, for tools that know nothing of a kind ([kstatus](../how-to/gitops-health.md)). They are about the generation in their `observedGeneration`.',
    of(readinessConditions),
    '## MachineConfigPool',
    of(poolConditions),
    '## MachineConfigNode',
    of(nodeConditions),
    '## MachineOSConfig',
    of(machineOSConfigConditions),
    '## MachineOSBuild',
    of(buildConditions),
    '## KubeletConfig and ContainerRuntimeConfig',
    of(serviceConfigConditions),
  ]);
}

export function eventsPage(): string {
  const rows = describedEvents.map(({ reason, type, by, on, meaning }) => [
    code(reason),
    type,
    on,
    by,
    meaning,
  ]);
  return page('Events', 'api/events.ts', [
    '`kubectl describe` shows the events of an object, `kubectl get events -A` all of them. Repeated events increase the count of the first one. Events of cluster-scoped objects are in the namespace `default`. The event of a failed build has the [reason of its failure](build-failures.md).',
    table(['reason', 'type', 'on', 'by', 'meaning'], rows),
  ]);
}

export function buildFailuresPage(): string {
  const rows = Object.entries(buildFailures).map(([reason, fix]) => [code(reason), fix]);
  return page('Reasons of failed builds', 'api/machine-os-build.ts', [
    'The reason of the condition Failed of a MachineOSBuild, and of its event. [How a build ends](builder.md#how-a-build-ends) lists which ones are retried, and how often.',
    table(['reason', 'what to do'], rows),
  ]);
}

export function exitCodesPage(): string {
  const names = Object.keys(exitCodes) as (keyof typeof exitCodes)[];
  const rows = names.map((name) => [String(exitCodes[name]), exitCodeMeanings[name]]);
  return page('Exit codes of shale', 'cli/command-line/exit-codes.ts', [table(['code', 'meaning'], rows)]);
}
