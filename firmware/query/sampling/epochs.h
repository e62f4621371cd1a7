/* Epochs: when each query is due. Epoch n of a query starts at network time n * period on all
 * motes.
 *
 * From the main loop, so that sampling never runs on top of the radio's handlers, what is due is
 * marked, the rest planned, queries whose time is over dropped, and sensors read. */
#ifndef SKERRY_QUERY_SAMPLING_EPOCHS_H
#define SKERRY_QUERY_SAMPLING_EPOCHS_H

/* As queries_changed, once the frame that brought a query is passed on: planning takes 2 ms on an
 * AVR, for which all who heard that frame would be silent, and then speak at once. */
void epochs_update_later(void);

#endif
