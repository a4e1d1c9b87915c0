import path from 'node:path';
import { z } from 'zod';
import type { DigestedPullspec } from '../../../api/references.ts';
import { sameList } from '../../../machineconfig/same-list.ts';
import { readRecord, writeRecord } from '../../records/durable-json.ts';
import type { StageOptions } from '../backend.ts';
import { imageKernelArguments, nextKernelArguments } from './kernel-arguments.ts';

const Notes = z.object({
  version: z.literal(1),
  deployments: z.array(
    z.object({
      image: z.string(),
      /** All of them. */
      kernelArguments: z.array(z.string()),
      /** Those among them that are neither the image's nor the host's own. */
      extra: z.array(z.string()),
    }),
  ),
});

/** More than a host has deployments; what was noted of older ones is nobody's. */
const MOST_NOTES = 16;

/** A deployment as far as its kernel arguments tell it from others. */
export interface ArgumentsOfDeployment {
  readonly image?: DigestedPullspec;
  readonly kernelArguments: readonly string[];
}

export interface StagedArguments {
  readonly booted: ArgumentsOfDeployment & { readonly directory: string };
  /** Of the host, as bootc names it. */
  readonly architecture: string;
  /** The arguments of the image that is staged. */
  readonly stagedImage: readonly string[];
  readonly extra: StageOptions['extraKernelArguments'];
}

/**
 * @param stateDirectory where the records of images lie.
 * @returns the kernel arguments of a deployment to be staged. @throws KernelArgumentsError, RecordError
 */
export async function argumentsToStage(
  stateDirectory: string,
  { booted, architecture, stagedImage, extra }: StagedArguments,
): Promise<readonly string[]> {
  const { add, remove } = extra;
  return nextKernelArguments({
    booted: booted.kernelArguments,
    bootedImage: await imageKernelArguments(booted.directory, architecture),
    stagedImage,
    extra: { remove: (await extraArgumentsOf(stateDirectory, booted)) ?? remove, add },
  });
}

/**
 * Notes which of a deployment's kernel arguments Shale adds. Before it is made: whatever boots it, and whenever, what the
 * host had before can then be told from what an update has brought.
 *
 * @param stateDirectory where the records of images lie.
 */
export async function noteExtraArguments(
  stateDirectory: string,
  { image, kernelArguments }: ArgumentsOfDeployment & { readonly image: DigestedPullspec },
  extra: readonly string[],
): Promise<void> {
  const notes = await readNotes(stateDirectory);
  const others = notes.filter(
    (note) => note.image !== image || !sameList(note.kernelArguments, kernelArguments),
  );
  const deployments = [{ image, kernelArguments, extra }, ...others].slice(0, MOST_NOTES);
  await writeRecord(fileIn(stateDirectory), { version: 1, deployments });
}

/** @returns those of a deployment's kernel arguments that Shale has added; undefined where that was not noted. */
async function extraArgumentsOf(
  stateDirectory: string,
  { image, kernelArguments }: ArgumentsOfDeployment,
): Promise<readonly string[] | undefined> {
  const notes = await readNotes(stateDirectory);
  return notes.find((note) => note.image === image && sameList(note.kernelArguments, kernelArguments))?.extra;
}

async function readNotes(stateDirectory: string) {
  return (await readRecord(fileIn(stateDirectory), Notes))?.deployments ?? [];
}

function fileIn(stateDirectory: string): string {
  return path.join(stateDirectory, 'kernel-arguments.json');
}
