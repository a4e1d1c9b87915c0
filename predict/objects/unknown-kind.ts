import { type CrdDefinition, crdDefinitions } from '../../api/crd-definitions.ts';
import { ImageConfigs } from '../../api/image-sources.ts';
import { apiVersionOf, type KubernetesObject } from '../../api/object.ts';
import { refusedOpenShiftSettings } from '../../machineconfig/openshift-settings.ts';
import { formatProblem } from '../../machineconfig/problem.ts';

/** Groups that have no other kinds than Shale's and those that it leaves out. */
const OWN_GROUPS = ['machineconfiguration.openshift.io', 'shale.dev'];
/** Kinds of OpenShift that Shale doesn't have (docs/differences-from-mco.md). */
const LEFT_OUT = ['ControllerConfig', 'ImageContentPolicy', 'InternalReleaseImage', 'OSImageStream'];

/**
 * Finds what an API server with Shale's definitions refuses: in their groups, another version or a typo of their kinds,
 * and in a group of Shale's own any kind that it doesn't have.
 */
export function unknownKind({ apiVersion, kind }: KubernetesObject): string[] {
  const [group = ''] = apiVersion.split('/');
  const ofGroup = crdDefinitions.filter((each) => each.kind.group === group);
  if (ofGroup.length === 0 || LEFT_OUT.includes(kind)) return [];
  const nearest =
    crdDefinitions.find((each) => each.kind.kind === kind) ??
    nearestKind(kind, ofGroup) ??
    nearestKind(kind, crdDefinitions);
  if (nearest === undefined && !OWN_GROUPS.includes(group)) return [];
  const expected =
    nearest === undefined
      ? ofGroup.map((each) => each.kind.kind).join(', ')
      : `${nearest.kind.kind} of ${apiVersionOf(nearest.kind)}`;
  return [`kind: is unknown in ${apiVersion}; expected ${expected}`];
}

/** API groups whose kinds are meant for nodes; of other groups' objects nobody expects an effect on them. */
const NODE_GROUPS = ['machineconfiguration.openshift.io', 'operator.openshift.io', 'config.openshift.io'];

/** A kind of Shale's in a group of others is a typo, except for Image, which others have, too. */
export function unsupported(object: KubernetesObject): string[] {
  const { apiVersion, kind, metadata } = object;
  const [group = ''] = apiVersion.split('/');
  const known = crdDefinitions.find((each) => each.kind.kind === kind)?.kind;
  const isMeant = known !== undefined && known !== ImageConfigs;
  if (!NODE_GROUPS.includes(group) && !isMeant) return [];
  const refused = refusedOpenShiftSettings(object).map(formatProblem);
  if (refused.length > 0) return refused;
  const instead = known === undefined ? '' : `; expected ${apiVersionOf(known)}`;
  return [
    `${kind} ${metadata.name}: has no effect, because Shale does not support ${apiVersion} ${kind}${instead}`,
  ];
}

/** @returns the definition of an object of Shale's kinds; undefined for any other. */
export function definitionOf({ apiVersion, kind: name }: KubernetesObject): CrdDefinition | undefined {
  return crdDefinitions.find(({ kind }) => kind.kind === name && apiVersion === apiVersionOf(kind));
}

/** Edits that turn one kind's name into another's at most, if it is taken for a typo: one for each three letters. */
const LETTERS_PER_EDIT = 3;
const MOST_EDITS = 3;

/** @returns the definition whose kind a name is a typo of, or has in another case; undefined where none is near. */
function nearestKind(name: string, definitions: readonly CrdDefinition[]): CrdDefinition | undefined {
  const most = Math.min(MOST_EDITS, Math.floor(name.length / LETTERS_PER_EDIT));
  const [nearest] = definitions
    .map((definition) => ({ definition, edits: editsBetween(name, definition.kind.kind) }))
    .filter(({ edits }) => edits <= most)
    .toSorted((a, b) => a.edits - b.edits);
  return nearest?.definition;
}

/** Levenshtein's distance of two names, whatever their case. */
function editsBetween(from: string, to: string): number {
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (const [line, letter] of [...from.toLowerCase()].entries()) {
    const next = [line + 1];
    for (const [index, other] of [...to.toLowerCase()].entries()) {
      const replaced = (row[index] ?? 0) + (letter === other ? 0 : 1);
      next.push(Math.min(replaced, (row[index + 1] ?? 0) + 1, (next[index] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
