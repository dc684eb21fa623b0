/** The documents that are open in this page, and saving them. */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IDocumentManager } from '@jupyterlab/docmanager';
import type { DocumentRegistry } from '@jupyterlab/docregistry';

import type { SaveResult, UnsavedDocument } from './protocol.js';

/** Milliseconds that one document gets: saving asks the user where the file changed on disk meanwhile. */
const SAVE_MILLISECONDS = 15_000;

export class Documents {
  constructor(
    private readonly shell: JupyterFrontEnd.IShell,
    private readonly manager: IDocumentManager,
  ) {}

  /** Those with changes that are not on disk. */
  unsaved(): UnsavedDocument[] {
    return this.dirty().map(({ path }) => ({
      path,
      kind: this.manager.registry.getFileTypesForPath(path)[0]?.contentType ?? '',
    }));
  }

  /** Save all of them, at the same time; what one of them does does not stop the others. */
  async save(): Promise<SaveResult> {
    const outcomes = await Promise.all(
      this.dirty().map(async context => ({ path: context.path, why: await saveOne(context) })),
    );
    return {
      saved: outcomes.filter(({ why }) => !why).map(({ path }) => path),
      failed: outcomes.filter(({ why }) => why),
    };
  }

  private dirty(): DocumentRegistry.Context[] {
    const found = new Map<string, DocumentRegistry.Context>();
    for (const area of ['main', 'down', 'right', 'left']) {
      for (const widget of this.shell.widgets(area)) {
        const context = this.manager.contextForWidget(widget);
        if (context?.model.dirty) {
          found.set(context.path, context);
        }
      }
    }
    return [...found.values()];
  }
}

/** Save a document; returns why it could not be saved, empty when it was. */
async function saveOne(context: DocumentRegistry.Context): Promise<string> {
  const late = new Promise<string>(resolve =>
    setTimeout(
      () => resolve('it was not saved in time; JupyterLab may be asking what to do'),
      SAVE_MILLISECONDS,
    ),
  );
  const saved = context.save().then(
    () => (context.model.dirty ? 'it changed while it was saved' : ''),
    (error: unknown) => (error instanceof Error ? error.message : String(error)),
  );
  return Promise.race([saved, late]);
}
