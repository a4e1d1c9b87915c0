import { type ClusterApiUpdate, parseClusterApiUpdate } from '../../api/annotation-requests.ts';
import type { MachineConfigNode } from '../../api/machine-config-node.ts';
import { annotations } from '../../api/names.ts';
import { formatSchemaError } from '../../api/schema-message.ts';

/** Cluster API has handed a node over for its update, as the annotation of its MachineConfigNode has it. */
export type Handover =
  | { readonly kind: 'by'; readonly update: ClusterApiUpdate }
  /** `why`: what of the annotation is wrong. */
  | { readonly kind: 'unreadable'; readonly why: string };

/** @returns undefined for a node that nobody has handed over. */
export function handoverOf({ metadata }: Pick<MachineConfigNode, 'metadata'>): Handover | undefined {
  const text = metadata.annotations?.[annotations.clusterApiUpdate];
  if (text === undefined) return undefined;
  try {
    return { kind: 'by', update: parseClusterApiUpdate(text) };
  } catch (error) {
    return { kind: 'unreadable', why: formatSchemaError(error) };
  }
}
