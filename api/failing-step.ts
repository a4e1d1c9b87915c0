import { z } from 'zod';
import { LONGEST_MESSAGE, Timestamp } from './object.ts';

/** What kind of failure a step has met. */
export const FailureKind = z.enum([
  /** The API server, or a webhook that it asks, does not accept the request as it is. */
  'Refused',
  /** Somebody else wrote the object in between, which is nothing unusual. */
  'Conflict',
  /** The API server asks to come back later. */
  'Throttled',
  /** The API server, or what it needs for the answer, is away. */
  'Unavailable',
  /** No answer of the API server: a registry, a disk, a defect. */
  'Unexpected',
]);
export type FailureKind = z.infer<typeof FailureKind>;

/** A step of the operator or the builder that fails, as a status has it. */
export const ReportedStep = z.object({
  apiVersion: z.string().describe('apiVersion of the object that the step is about.'),
  kind: z.string().describe('Kind of the object.'),
  name: z.string().describe('Name of the object.'),
  namespace: z.string().exactOptional().describe('Namespace of the object.'),
  step: z.string().describe('What is being done.'),
  reason: FailureKind.describe(
    'Refused: the API server or a webhook does not accept the request. Throttled: it asks to come back later. Unavailable: it gives no answer, or has an error of its own. Conflict: others write the object all the time. Unexpected: something else.',
  ),
  message: z.string().max(LONGEST_MESSAGE).describe("The request, and the API server's own words."),
  since: Timestamp.describe('When the step failed first.'),
});
export type ReportedStep = z.infer<typeof ReportedStep>;

/** Steps that a status names, the longest failing first. */
export const MOST_STEPS = 20;

/** The steps that fail, as a status has them. */
export const ReportedSteps = z.array(ReportedStep).max(MOST_STEPS);
