import { z } from 'zod';
import { DigestedPullspecSchema } from './references.ts';

/** How many of each list a status has; the record of the image has all. */
export const SHOWN_CONTENTS = 20;
/** Characters of one text of an image, such as a version. */
export const SHOWN_TEXT = 128;
/** Characters of a sentence. */
export const SHOWN_SENTENCE = 512;

const Count = z.int().min(0);
const Text = z.string().max(SHOWN_TEXT);
const Texts = z.array(Text).max(SHOWN_CONTENTS);

export const BuildContents = z
  .object({
    summary: z
      .string()
      .max(SHOWN_SENTENCE)
      .exactOptional()
      .describe(
        'The changes in one line; absent if there are none. For the first image, what it has. Such as 41 packages (41 upgraded), kernel 6.12.9 -> 6.12.14.',
      ),
    previousImage: DigestedPullspecSchema.exactOptional().describe(
      'The image of the pool that the new one is compared with; absent for the first one.',
    ),
    base: z
      .object({ from: z.string().max(447), to: z.string().max(447) })
      .exactOptional()
      .describe(
        'What the images are based on by digest, if it differs: base images, or what the commands of a Containerfile made of them.',
      ),
    packages: z
      .object({
        added: Count,
        removed: Count,
        upgraded: Count,
        downgraded: Count,
        changed: Count.describe('Packages of which neither version comes before the other.'),
        first: z
          .array(z.object({ change: Text, name: Text, from: Text.exactOptional(), to: Text.exactOptional() }))
          .max(SHOWN_CONTENTS)
          .describe('The first changes: removed and downgraded packages come before upgraded ones.'),
      })
      .exactOptional()
      .describe('Absent where the packages of one image are not known.'),
    kernels: z
      .object({ from: Texts, to: Texts })
      .exactOptional()
      .describe('Versions of kernels, if they differ.'),
    record: DigestedPullspecSchema.exactOptional().describe(
      'The list of everything that was read of the image, a referrer of it in the registry.',
    ),
    unreadable: z
      .array(z.string().max(SHOWN_SENTENCE))
      .max(SHOWN_CONTENTS)
      .exactOptional()
      .describe('What could not be compared and why.'),
  })
  .describe(
    "Shale's own: what is different inside the image, compared with the one that the pool had: packages, kernels, units and users.",
  );
/** What is different inside an image, compared with the one before, as the status of a build has it. */
export type BuildContents = z.infer<typeof BuildContents>;
