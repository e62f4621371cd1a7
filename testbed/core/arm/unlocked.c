/* libunicorn 2.0 gathers the pages around each store of the emulated CPU in a tree, to lock them
 * for other threads that run the same CPU. There are none, and its locks are empty: the tree alone
 * took a quarter of a mote's time. These two functions are found before its own, as this library is
 * what has been opened and libunicorn comes with it; nobody else looks into what they return.
 * Another version has its own, and may be slower. */
#include <unicorn/unicorn.h>

#if UC_API_MAJOR == 2 && UC_API_MINOR == 0
struct page_collection;

struct page_collection *page_collection_lock_arm(struct uc_struct *engine, uint64_t start,
                                                 uint64_t end);
void page_collection_unlock_arm(struct page_collection *pages);

struct page_collection *page_collection_lock_arm(struct uc_struct *engine, uint64_t start,
                                                 uint64_t end)
{
    (void)engine;
    (void)start;
    (void)end;
    return NULL;
}

void page_collection_unlock_arm(struct page_collection *pages) { (void)pages; }
#endif
