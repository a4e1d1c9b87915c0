import { z } from 'zod';
import { LONGEST_MESSAGE } from './object.ts';

const Id = z.string().min(1).max(64);
/** Longest user name in a request; longer ones are cut. */
const LONGEST_USER = 253;
const User = z.string().max(LONGEST_USER);

const RepairRequest = z.object({
  id: Id,
  by: User.default(''),
  at: z.string().max(64).default(''),
});

/** A request to put back what was changed by hand on a node, as its annotation has it (api/names.ts). */
export type RepairRequest = z.infer<typeof RepairRequest>;

/** @returns the annotation's text. */
export function formatRepairRequest({ id, by, at }: RepairRequest): string {
  return JSON.stringify({ id, by: by.slice(0, LONGEST_USER), at });
}

/** @returns the request of the annotation's text. @throws Error that says what of it is wrong. */
export function parseRepair(text: string): RepairRequest {
  return RepairRequest.parse(JSON.parse(text));
}

/** How a request ended; a daemon that has one carries the request out no second time. */
export const RepairRecord = z.object({
  id: Id.describe('The id of the request, as the annotation has it.'),
  by: User.describe('The user who requested the repair.'),
  finishedAt: z.string().meta({ format: 'date-time' }).describe('When the daemon was done.'),
  result: z
    .enum(['Succeeded', 'Failed'])
    .describe(
      'Failed: it is not tried again. A path that still differs after a repair that succeeded, such as one in /usr, is in the message of NodeDegraded.',
    ),
  message: z.string().max(LONGEST_MESSAGE).exactOptional().describe('Why the repair failed.'),
});
export type RepairRecord = z.infer<typeof RepairRecord>;
