import {
  buildConditions,
  buildFailures,
  nodeConditions,
  poolConditions,
} from '../../api/described-conditions.ts';
import {
  type DescribedName,
  describedAnnotations,
  describedImageLabels,
  describedLabels,
} from '../../api/described-names.ts';
import { describedEvents } from '../../api/events.ts';
import { exitCodeMeanings, exitCodes } from '../../cli/command-line/exit-codes.ts';
import { code, page, table } from './markdown.ts';

/** Pages that list the words which Shale shares with people and other programs, each from where the code takes them. */

export function namesPage(): string {
  return page('Labels and annotations', 'api/described-names.ts', [
    'Those under `machineconfiguration.openshift.io` are MCO’s, and mean here what they mean there. What each setting of a pool or a node does, and what comes of one that can’t be read: [The operator](operator.md).',
    '## Annotations',
    namesTable(describedAnnotations),
    '## Labels',
    namesTable(describedLabels),
    '## Labels of an image',
    'Beside those of OCI: [Where an image comes from](../supply-chain.md).',
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
      ['condition', 'what it means that it is True'],
      Object.entries(conditions).map(([type, meaning]) => [code(type), meaning]),
    );
  return page('Conditions', 'api/described-conditions.ts', [
    'Of `status.conditions`. Each has a reason in one word and a message in words; `kubectl wait --for=condition=TYPE` waits for one.',
    '## Of a MachineConfigPool',
    of(poolConditions),
    '## Of a MachineConfigNode',
    of(nodeConditions),
    '## Of a MachineOSBuild',
    of(buildConditions),
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
    '`kubectl describe` shows them with their object, `kubectl get events -A` all of them. An event of the same text counts up. Those of cluster-scoped objects are in the namespace `default`. A build that failed gives the reason of its failure: [Why an image was not built](build-failures.md).',
    table(['reason', 'type', 'on', 'by', 'meaning'], rows),
  ]);
}

export function buildFailuresPage(): string {
  const rows = Object.entries(buildFailures).map(([reason, mend]) => [code(reason), mend]);
  return page('Why an image was not built', 'api/described-conditions.ts', [
    'The reason of the condition Failed of a MachineOSBuild, and of its event. Which are tried again by themselves, and how often: [How a build ends](builder.md#how-a-build-ends).',
    table(['reason', 'what to do'], rows),
  ]);
}

export function exitCodesPage(): string {
  const names = Object.keys(exitCodes) as (keyof typeof exitCodes)[];
  const rows = names.map((name) => [String(exitCodes[name]), exitCodeMeanings[name]]);
  return page('Exit codes of shale', 'cli/command-line/exit-codes.ts', [table(['code', 'meaning'], rows)]);
}
