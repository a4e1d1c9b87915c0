import { z } from 'zod';

const StringMap = z.record(z.string(), z.string());

/** What an admin may set of the builder's pod; the rest of it is what the builder's safety rests on. */
const BuilderPod = z.strictObject({
  resources: z
    .strictObject({ requests: StringMap.optional(), limits: StringMap.optional() })
    .optional()
    .describe('requests and limits of its container, in place of the default ones'),
  nodeSelector: StringMap.optional(),
  tolerations: z.array(z.looseObject({})).optional(),
  affinity: z.looseObject({}).optional(),
  podAnnotations: StringMap.optional(),
  podLabels: StringMap.optional(),
});

/** Settings of the builder's pod. What is absent is as the operator has it by default. */
export type BuilderPodSettings = z.infer<typeof BuilderPod>;

/**
 * Reads the operator's flag `--builder-pod`.
 *
 * @param text JSON. What is empty in it is absent: values of a chart are there before anybody sets them.
 * @throws Error that names the field and says what is wrong with it.
 */
export function parseBuilderPod(text: string): BuilderPodSettings {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new Error('must be a JSON object', { cause });
  }
  const parsed = BuilderPod.safeParse(value);
  if (parsed.success) return withoutEmpty(parsed.data);
  const [issue] = parsed.error.issues;
  const field = issue?.path.join('.');
  throw new Error(field ? `${field}: ${issue?.message}` : (issue?.message ?? 'must be a JSON object'));
}

function withoutEmpty(settings: BuilderPodSettings): BuilderPodSettings {
  return Object.fromEntries(
    Object.entries(settings).filter(([, value]) => value !== undefined && Object.keys(value).length > 0),
  );
}
